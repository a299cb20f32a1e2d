"""`people`, `groups`, `notify` and `gate` of the operator's config, as far as they can be read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path as FilePath

from capuchin_yaml.compiler.document import Path
from capuchin_yaml.compiler.reading import Reading
from capuchin_yaml.policy.people import People

OCCASIONS = ("opened", "reminder", "escalated")
GATE_S = 5.0
GATE_LONGEST_S = 60.0
MAX_SECRET_BYTES = 4096
_OTHERS_READ = 0o077


@dataclass(frozen=True, slots=True)
class SecretSource:
    """Where the secret that signs a request is: a variable, or a file."""

    env: str = ""
    file: str = ""

    def read(self) -> bytes:
        """The secret.

        Raises:
            ValueError: it is not there, or others can read it.
        """
        if self.env:
            value = os.environ.get(self.env, "").encode()
            if not value:
                raise ValueError(f"the variable {self.env} is not set where the worker runs")
            return value
        try:
            with open(self.file, "rb") as file:
                if os.fstat(file.fileno()).st_mode & _OTHERS_READ:
                    raise ValueError(f"others can read it; type: chmod 600 {self.file}")
                value = file.read(MAX_SECRET_BYTES + 1).strip()
        except OSError as error:
            raise ValueError(f"{self.file} cannot be read: {error.strerror}") from None
        if not value or len(value) > MAX_SECRET_BYTES:
            raise ValueError(f"{self.file} must hold 1 to {MAX_SECRET_BYTES} bytes")
        return value


@dataclass(frozen=True, slots=True)
class Hook:
    """Who is told: a program, or a web address."""

    command: tuple[str, ...] = ()
    webhook: str = ""
    bell: bool = False
    env: tuple[str, ...] = ()
    secret: SecretSource | None = None
    on: tuple[str, ...] = OCCASIONS
    agents: tuple[str, ...] = ()

    def rings(self, agent: str) -> bool:
        """Whether a worker has anything to do for it with this agent."""
        return not self.bell and (not self.agents or agent in self.agents)

    def wants(self, event: str, agent: str) -> bool:
        """Whether it is to be told of this occasion with this agent."""
        return event in self.on and (not self.agents or agent in self.agents)


@dataclass(frozen=True, slots=True)
class Gate:
    """The policy service that is asked before calls."""

    url: str
    timeout_s: float = GATE_S
    agents: tuple[str, ...] = ()
    secret: SecretSource | None = None

    def is_about(self, agent: str) -> bool:
        """Whether calls of this agent are asked about."""
        return not self.agents or agent in self.agents


def read_people(reading: Reading) -> People:
    """Groups and keys."""
    groups = {name: reading.texts(("groups", name)) for name in _names(reading, ("groups",))}
    keys = {
        name: tuple(" ".join(key.split()[:2]) for key in reading.texts(("people", name, "keys")))
        for name in _names(reading, ("people",))
    }
    return People(groups, {name: given for name, given in keys.items() if given})


def read_hooks(reading: Reading) -> Iterator[Hook]:
    """Who is told of what waits."""
    block = reading.document.node(("notify",))
    for i in range(len(block.items) if block is not None else 0):
        path: Path = ("notify", i)
        _check_hook(reading, path)
        bell = reading.node((*path, "bell"))
        command = reading.texts((*path, "command"))
        if command and not FilePath(command[0]).is_absolute():
            reading.error(
                "bad-value",
                f"the program {command[0]!r} must be named by its whole path",
                (*path, "command", 0),
                "such as /usr/local/bin/page",
            )
        yield Hook(
            command=command,
            webhook=reading.text((*path, "webhook")) or "",
            bell=bell is not None and bell.value is True,
            env=reading.texts((*path, "env")),
            secret=_secret(reading, (*path, "secret")),
            on=reading.texts((*path, "on")) or OCCASIONS,
            agents=reading.texts((*path, "agents")),
        )


_KINDS = ("command", "webhook", "bell")
_BELONGS = {"env": "command", "secret": "webhook"}


def _check_hook(reading: Reading, path: Path) -> None:
    """Report a hook that is none or several at once, and keys of another kind of hook."""
    node = reading.document.node(path)
    if node is None or node.kind != "map":
        return
    kinds = [kind for kind in _KINDS if kind in node.entries]
    if len(kinds) != 1:
        found = " and ".join(kinds) or "none of them"
        reading.error(
            "bad-value",
            f"a hook has one of command, webhook and bell, found {found}",
            path,
            "write one entry for each",
        )
        return
    for key, kind in _BELONGS.items():
        if key in node.entries and kinds != [kind]:
            reading.error(
                "needless-key",
                f"{key} goes with {kind} only",
                reading.document.key_span((*path, key)),
                "remove it",
            )


def read_gate(reading: Reading) -> Gate | None:
    """The gate, if there is one."""
    url = reading.text(("gate", "url"))
    if url is None:
        return None
    timeout_s = reading.duration_s(("gate", "timeout"))
    if timeout_s is not None and timeout_s > GATE_LONGEST_S:
        reading.error(
            "bad-duration",
            f"gate.timeout must be at most {GATE_LONGEST_S:g}s: every call waits for it",
            ("gate", "timeout"),
            "write timeout: 5s",
        )
    return Gate(
        url,
        timeout_s if timeout_s is not None else GATE_S,
        reading.texts(("gate", "agents")),
        _secret(reading, ("gate", "secret")),
    )


def _secret(reading: Reading, path: Path) -> SecretSource | None:
    env, file = reading.text((*path, "env")), reading.text((*path, "file"))
    node = reading.document.node(path)
    if node is not None and node.kind == "map" and len({"env", "file"} & set(node.entries)) != 1:
        reading.error("bad-value", "a secret is in one place", path, "write {env: NAME}")
    return SecretSource(env or "", file or "") if env or file else None


def _names(reading: Reading, path: Path) -> tuple[str, ...]:
    block = reading.node(path)
    return tuple(block.entries) if block is not None and block.kind == "map" else ()
