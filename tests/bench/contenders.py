"""One run of the bench: the places in which contenders run, opened when first asked for."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.bench.places import OurPlace, Place, PlainPlace, ours, plain, stock_server
from tests.bench.processes import peak_mb
from tests.bench.report import Figure


@dataclass(slots=True)
class Run:
    """Shared by all figures of the run; whatever was opened ends with it."""

    folder: Path
    turns: int = 50
    talks: int = 100
    """Conversations of a crowd."""
    waiting: int = 10_000
    """Conversations that wait for a person."""
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    _ours: OurPlace | None = None
    _plain: dict[str, PlainPlace] = field(default_factory=dict)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._stack.aclose()

    async def ours(self) -> OurPlace:
        """Ours as `up` starts it."""
        if self._ours is None:
            self._ours = await self._stack.enter_async_context(ours(self.folder / "ours"))
        return self._ours

    async def plain_on_stock(self) -> PlainPlace:
        """The plain design on the stock server."""
        if "stock" not in self._plain:
            address, pid = await self._stack.enter_async_context(
                stock_server(self.folder / "stock")
            )
            self._plain["stock"] = await self._stack.enter_async_context(
                plain(address, pid, "plain")
            )
        return self._plain["stock"]

    async def plain_on_tuned(self) -> PlainPlace:
        """The plain design on the server that `up` started for us."""
        if "tuned" not in self._plain:
            server = await self.ours()
            self._plain["tuned"] = await self._stack.enter_async_context(
                plain(server.address, server.server_pid, "plain")
            )
        return self._plain["tuned"]

    def memory(self) -> list[Figure]:
        """Peak memory of every process so far."""
        places: dict[str, Place | None] = {"ours": self._ours}
        places |= {f"plain, {name} server": place for name, place in self._plain.items()}
        figures = []
        for name, place in places.items():
            for role, pid in place.pids.items() if place is not None else ():
                # The tuned server is one process, whoever uses it.
                if (name, role) != ("plain, tuned server", "server"):
                    peak = peak_mb(pid)
                    if peak is not None:
                        figures.append(Figure(f"{name}: {role}, peak memory", peak, "MB"))
        return figures
