"""A house for engine tests: a worker, a scripted model and a way to talk to a conversation."""

from __future__ import annotations

import asyncio
import importlib
import secrets
import sys
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml
from temporalio.client import (
    Client,
    WithStartWorkflowOperation,
    WorkflowHandle,
)
from temporalio.common import (
    SearchAttributeKey,
    SearchAttributePair,
    TypedSearchAttributes,
    WorkflowIDConflictPolicy,
)

from capuchin_yaml.engine import contract
from capuchin_yaml.engine.activities import ModelSettings
from capuchin_yaml.engine.agents import AgentTable, ServedAgent
from capuchin_yaml.engine.storage import FolderStore
from capuchin_yaml.engine.worker import WorkerSettings, run_worker
from capuchin_yaml.spec import AgentSpec, ApprovalSpec, Limits, ToolSpec
from capuchin_yaml.tools.registry import Registry

LAB = Path(__file__).parent / "lab"
if str(LAB) not in sys.path:
    sys.path.insert(0, str(LAB))
lab = importlib.import_module("capuchin_lab")
"""The same module that the worker in this process runs, with its gates."""


def now() -> str:
    """The time as requests carry it."""
    return datetime.now(UTC).isoformat()


def tool_specs(registry: Registry, *identities: str, **changes: Any) -> tuple[ToolSpec, ...]:
    """Pin tools the way the compiler does."""
    specs = []
    for identity in identities:
        entry, _, name = identity.partition(".")
        tool = registry.find(identity)
        distribution, version = registry.distribution(entry)
        specs.append(
            ToolSpec(
                identity=identity,
                alias=name,
                description=tool.description,
                input_schema=tool.input_schema,
                effect=tool.effect,
                idempotent=tool.idempotent,
                needs_approval=tool.needs_approval,
                tool_version=tool.version,
                distribution=distribution,
                distribution_version=version,
                **changes,
            )
        )
    return tuple(specs)


@dataclass
class Talk:
    """One conversation, seen through the raw doors."""

    house: House
    id: str
    handle: WorkflowHandle[Any, Any]

    def fields(self, **more: Any) -> dict[str, Any]:
        """The fields that every request carries."""
        return {
            "conversation": self.id,
            "id": uuid.uuid4().hex,
            "by": "ann",
            "client": "test",
            "sent_at": now(),
            **more,
        }

    async def send(self, text: str, **more: Any) -> Any:
        """Send a message and return the answer."""
        request = contract.SendMessage(**self.fields(text=text, **more))
        return await self.update(contract.SEND_MESSAGE, request)

    async def update(self, name: str, request: contract.Request) -> Any:
        """Make one update, repeated while the conversation rolls over."""
        return await self.handle.execute_update(name, request, result_type=dict)

    async def decide(self, item: Mapping[str, Any], choice: str, **more: Any) -> Any:
        """Decide an item as it was shown."""
        fields = self.fields(item=item["id"], digest=item["digest"], choice=choice)
        return await self.update(contract.DECIDE, contract.Decide(**{**fields, **more}))

    async def cancel(self) -> Any:
        """Cancel the running turn."""
        return await self.update(contract.CANCEL_TURN, contract.CancelTurn(**self.fields()))

    async def close(self) -> Any:
        """Close the conversation."""
        return await self.update(contract.CLOSE, contract.Close(**self.fields()))

    async def ask(self, name: str, start: int = 0) -> Any:
        """Ask one query."""
        question = contract.Ask(conversation=self.id, start=start)
        return await self.handle.query(name, question, result_type=dict)

    async def state(self) -> Any:
        """The state at a glance."""
        return await self.ask(contract.STATE)

    async def events(self) -> list[dict[str, Any]]:
        """All events that the current run holds."""
        found: list[dict[str, Any]] = []
        while True:
            page = await self.ask(contract.EVENTS, found[-1]["offset"] + 1 if found else 0)
            found += page["events"]
            if page["next"] >= page["total"]:
                return found

    async def kinds(self) -> list[str]:
        """The kinds of all events."""
        return [e["kind"] for e in await self.events()]

    async def entries(self) -> list[dict[str, Any]]:
        """The transcript that the current run holds."""
        page = await self.ask(contract.TRANSCRIPT)
        found: list[dict[str, Any]] = page["entries"]
        return found

    async def until(
        self, fits: Callable[[Any], bool | Awaitable[bool]], timeout_s: float = 30.0
    ) -> Any:
        """Return the first state that fits."""
        async with asyncio.timeout(timeout_s):
            while True:
                state = await self.state()
                verdict = fits(state)
                if verdict if isinstance(verdict, bool) else await verdict:
                    return state
                await asyncio.sleep(0.03)

    async def idle(self, timeout_s: float = 30.0) -> Any:
        """Wait until the agent has answered everything."""
        return await self.until(
            lambda s: s["status"] in ("idle", "closed", "failed"), timeout_s=timeout_s
        )

    async def item(self, kind: str = "approval", timeout_s: float = 30.0) -> Any:
        """Wait for the one open item of a kind."""
        state = await self.until(
            lambda s: any(i["kind"] == kind for i in s["items"]), timeout_s=timeout_s
        )
        return next(i for i in state["items"] if i["kind"] == kind)

    async def last_words(self) -> str:
        """What the agent said last."""
        for event in reversed(await self.events()):
            if event["kind"] == "assistant_message":
                return str(event["text"])
        return ""

    async def failed_tasks(self) -> int:
        """Workflow tasks that failed, over the whole history of the current run."""
        history = await self.handle.fetch_history()
        return sum(e.HasField("workflow_task_failed_event_attributes") for e in history.events)


@dataclass
class House:
    """A project on the shared test server."""

    client: Client
    project: str
    folder: Path
    registry: Registry
    agents: AgentTable
    settings: WorkerSettings
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    worker: asyncio.Task[None] | None = None

    def script(self, *rules: Mapping[str, Any], default: Mapping[str, Any] | None = None) -> str:
        """Write a script for the scripted model and return the model's name."""
        path = self.folder / f"script-{secrets.token_hex(4)}.yaml"
        content: dict[str, Any] = {"rules": list(rules)}
        if default is not None:
            content["default"] = dict(default)
        path.write_text(yaml.safe_dump(content))
        return f"scripted:{path}"

    def agent(
        self,
        name: str,
        model: str,
        *tools: str,
        approval: ApprovalSpec | None = None,
        limits: Limits | None = None,
        timeout_s: float = 60.0,
        injected: Sequence[str] = (),
    ) -> AgentSpec:
        """Serve an agent."""
        spec = AgentSpec(
            name=name,
            prompt="You are a test.",
            model=model,
            tools=tool_specs(self.registry, *tools, timeout_s=timeout_s),
            approval=approval or ApprovalSpec(policy="auto"),
            limits=limits or Limits(),
            injected=tuple(injected),
        )
        self.agents.put(ServedAgent(spec))
        return spec

    async def talk(self, agent: str, text: str | None = "hello", **start: Any) -> Talk:
        """Start a conversation with its first message."""
        id = f"{self.project}.{agent}-{secrets.token_hex(4)}"
        talk = Talk(self, id, self.client.get_workflow_handle(id))
        first = contract.StartConversation(
            **{**talk.fields(), "agent": agent, "project": self.project, **start}
        )
        attributes = TypedSearchAttributes(
            [
                SearchAttributePair(
                    SearchAttributeKey.for_keyword(contract.SA_PROJECT), self.project
                ),
                SearchAttributePair(SearchAttributeKey.for_keyword(contract.SA_AGENT), agent),
                SearchAttributePair(SearchAttributeKey.for_keyword(contract.SA_STATUS), "open"),
            ]
        )
        options: dict[str, Any] = {
            "id": id,
            "task_queue": contract.task_queue(self.project),
            "search_attributes": attributes,
        }
        if text is None:
            talk.handle = await self.client.start_workflow(contract.WORKFLOW, first, **options)
            return talk
        message = contract.SendMessage(**talk.fields(text=text))
        operation: Any = WithStartWorkflowOperation(
            contract.WORKFLOW,
            first,
            id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
            **options,
        )
        await self.client.execute_update_with_start_workflow(
            contract.SEND_MESSAGE, message, start_workflow_operation=operation, result_type=dict
        )
        return talk

    def effects(self) -> list[str]:
        """Lines that tools wrote, without their keys."""
        path = self.settings.data_dir / "lab" / "effects"
        return [x.split(" ", 1)[1] for x in path.read_text().splitlines()] if path.exists() else []

    def keys(self) -> list[str]:
        """The idempotency keys of the effects."""
        path = self.settings.data_dir / "lab" / "effects"
        return [x.split(" ", 1)[0] for x in path.read_text().splitlines()] if path.exists() else []

    async def start_worker(self) -> None:
        """Serve the project from this process."""
        self.stop = asyncio.Event()
        ready = asyncio.Event()
        self.worker = asyncio.create_task(
            run_worker(
                self.client,
                project=self.project,
                agents=self.agents,
                registry=self.registry,
                settings=self.settings,
                stop=self.stop,
                ready=ready,
            )
        )
        waiter = asyncio.create_task(ready.wait())
        await asyncio.wait({waiter, self.worker}, return_when=asyncio.FIRST_COMPLETED)
        waiter.cancel()
        if self.worker.done():
            await self.worker

    async def stop_worker(self) -> None:
        """Drain and stop."""
        if self.worker is not None:
            self.stop.set()
            await self.worker
            self.worker = None


@asynccontextmanager
async def open_house(
    client: Client,
    folder: Path,
    *,
    roll_over_events: int = contract.ROLL_OVER_EVENTS,
    store: FolderStore | None = None,
    grace_s: float = 1.0,
    serve: bool = True,
    concurrent_activities: int = 200,
) -> AsyncIterator[House]:
    """A fresh project with a running worker."""
    house = House(
        client=client,
        project=f"p{secrets.token_hex(4)}",
        folder=folder,
        registry=Registry.installed(),
        agents=AgentTable(),
        settings=WorkerSettings(
            data_dir=folder / "data",
            store=store,
            models=ModelSettings(),
            grace_s=grace_s,
            concurrent_activities=concurrent_activities,
            roll_over_events=roll_over_events,
        ),
    )
    if serve:
        await house.start_worker()
    try:
        yield house
    finally:
        await house.stop_worker()
