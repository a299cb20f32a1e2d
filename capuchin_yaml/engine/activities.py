"""What the workflow has done for it: pin a definition, judge calls, call the model.

Tool calls are in `tool_runner`. Each activity takes one sealed request and refuses to act
for any run but the one that the request names.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from temporalio import activity
from temporalio.client import Client
from temporalio.exceptions import ApplicationError

from capuchin_yaml.compiler.load import check_injected, check_variables
from capuchin_yaml.compiler.operator_config import LiveOperatorConfig
from capuchin_yaml.compiler.template import render_prompt
from capuchin_yaml.engine import contract
from capuchin_yaml.engine.agents import AgentTable
from capuchin_yaml.engine.failures import definition_failure, model_failure
from capuchin_yaml.engine.model_calls import ModelCalls
from capuchin_yaml.engine.pauses import PauseBook
from capuchin_yaml.engine.scrub import Scrubber
from capuchin_yaml.engine.state import chained
from capuchin_yaml.engine.window import WindowCache
from capuchin_yaml.errors import CapuchinError, ModelUnavailable, PluginUnavailable
from capuchin_yaml.items import terms_of
from capuchin_yaml.messages import (
    AssistantMessage,
    Block,
    CallBlock,
    ModelReply,
    ModelRequest,
    ModelTool,
    OpaqueBlock,
    ReplyCall,
    TextBlock,
    entry_from_json,
    entry_to_json,
)
from capuchin_yaml.models.adapter import ModelAdapter
from capuchin_yaml.models.registry import REHEARSAL
from capuchin_yaml.policy.grants import Grants
from capuchin_yaml.policy.judge import CallContext, InstalledTool, judge_calls
from capuchin_yaml.policy.rules import Facts, as_written
from capuchin_yaml.spec import AgentSpec, JsonValue, ModelChoice, canonical_json
from capuchin_yaml.tally import tally_from_json
from capuchin_yaml.tools.registry import Registry

MAX_REPLY_BYTES = 512 * 1024
"""Longest text block or arguments of one reply that are kept."""
MAX_INPUT_DEPTH = 64
MAX_TOKENS = 4096
"""Longest reply where the agent does not say."""
TAIL_BYTES = 8 * 1024
"""Most of a running reply that travels as heartbeat details."""
_MAX_RULE = 1000
"""Characters of a rule that an item shows."""


@dataclass(slots=True)
class ModelSettings:
    """Which models a worker uses."""

    forced: str | None = None
    """`CAPUCHIN_MODEL`: whatever the agent says."""
    default: str = REHEARSAL
    """For agents that name no model."""
    stream_every_s: float = 0.1


@dataclass(slots=True)
class Activities:
    """The activities of one worker."""

    client: Client
    agents: AgentTable
    registry: Registry
    models: ModelSettings
    pauses: PauseBook
    roll_over_events: int = contract.ROLL_OVER_EVENTS
    windows: WindowCache = field(default_factory=WindowCache)
    scrubber: Scrubber = field(default_factory=Scrubber)
    operator: LiveOperatorConfig = field(default_factory=LiveOperatorConfig)
    calls: ModelCalls = field(init=False)

    def __post_init__(self) -> None:
        """Let model calls share what this worker has."""
        self.calls = ModelCalls(self.agents, self.operator, self.scrubber)

    # Why never interrupted: the SDK raises into the thread of a sync activity that takes too long.
    # In the middle of the import of a tool package that would leave the package broken for good.
    @activity.defn(name=contract.PIN_DEFINITION, no_thread_cancel_exception=True)
    def pin_definition(self, request: contract.PinDefinition) -> dict[str, JsonValue]:
        """Fix the agent as it is on this worker now, with its prompt rendered."""
        check_origin(request, contract.PinDefinition)
        agent = self.agents.get(request.agent)
        if agent is None:
            names = ", ".join(self.agents.names()) or "none"
            raise definition_failure(
                CapuchinError(f"this worker has no agent named {request.agent!r}; it has: {names}")
            )
        try:
            variables = check_variables(agent.spec, request.variables)
            check_injected(agent.spec, request.injected)
            system = render_prompt(agent.spec.prompt, variables)
        except CapuchinError as error:
            raise definition_failure(error) from None
        return {
            "spec": agent.spec.to_json(),
            "hash": agent.spec.definition_hash,
            "model": self.models.forced or agent.spec.model or self.models.default,
            "system": system,
            "roll_over_events": self.roll_over_events,
        }

    @activity.defn(name=contract.JUDGE, no_thread_cancel_exception=True)
    def judge(self, request: contract.Judge) -> list[dict[str, JsonValue]]:
        """The verdicts on the calls of one reply."""
        check_origin(request, contract.Judge)
        spec = AgentSpec.from_json(request.spec)
        verdicts = judge_calls(
            spec,
            request.definition_hash,
            self._context(spec, request),
            request.calls,
            self._installed,
            Grants(request.grants, request.now),
        )
        return [
            {**self._with_operator(v, spec), "rule": self._rule(v, spec, request.definition_hash)}
            for v in verdicts
        ]

    def _rule(self, verdict: Mapping[str, JsonValue], spec: AgentSpec, definition: str) -> str:
        """The rule that decided, as written and where; empty when something else did."""
        kind, _, place = str(verdict["decided_by"]).partition(" ")
        if kind not in ("rule", "floor") or not place.isdigit():
            return ""
        number = int(place)
        if kind == "floor":
            rules = self.operator.now().floor.rules
            where = f"operator's rule {number}"
        else:
            rules = spec.approval.rules
            served = self.agents.get(spec.name)
            where = f"rule {number}"
            # Why by hash: the file may have changed since the conversation began.
            if served is not None and served.spec.definition_hash == definition:
                places = served.rule_places
                where += f" ({places[number - 1]})" if number <= len(places) else ""
        if number > len(rules):
            return ""
        return f"{where}: {as_written(rules[number - 1])}"[:_MAX_RULE]

    def _with_operator(
        self, verdict: dict[str, JsonValue], spec: AgentSpec
    ) -> dict[str, JsonValue]:
        """A verdict with who may decide, and whether others are to be asked or told."""
        config = self.operator.now()
        more: dict[str, JsonValue] = {"hooks": any(h.rings(spec.name) for h in config.hooks)}
        open_to_gate = verdict["verdict"] in ("allow", "ask")
        if open_to_gate and config.gate is not None and config.gate.is_about(spec.name):
            # Why: what the gate asks about has the terms of the block.
            more |= {"gate": True, "terms": verdict["terms"] or terms_of(spec.approval)}
        terms = more.get("terms") or verdict["terms"]
        if terms is not None and terms["approvers"]:
            more["may_decide"] = list(config.people.members(terms["approvers"]))
            if terms["escalate_to"]:
                more["may_then"] = list(config.people.members([terms["escalate_to"]]))
        return {**verdict, **more}

    def _context(self, spec: AgentSpec, request: contract.Judge) -> CallContext:
        try:
            variables = check_variables(spec, request.variables)
        except CapuchinError:
            # They were checked when the definition was pinned; a condition that misses one fails.
            variables = dict(request.variables)
        return CallContext(
            injected=request.injected,
            facts=Facts(
                now=datetime.fromisoformat(request.now) if request.now else datetime.now(UTC),
                variables=variables,
                injected=request.injected,
                untrusted=request.untrusted,
            ),
            tallies={name: tally_from_json(value) for name, value in request.tallies.items()},
            floor=self.operator.now().floor,
        )

    def _installed(self, identity: str) -> InstalledTool | None:
        entry, _, name = identity.partition(".")
        try:
            package = self.registry.package(entry)
        except PluginUnavailable:
            return None
        tool = package.tools.get(name)
        if tool is None:
            return None
        return InstalledTool(
            tool_version=tool.version,
            distribution=package.distribution,
            distribution_version=package.distribution_version,
            needs_approval=tool.needs_approval,
            has_preview=tool.preview is not None,
        )

    @activity.defn(name=contract.CALL_MODEL)
    async def call_model(self, request: contract.CallModel) -> dict[str, JsonValue]:
        """One reply of the model, as the transcript entry it becomes."""
        check_origin(request, contract.CallModel)
        pinned = await self.windows.definition(self.client, request)
        if request.pausable_in:
            paused = await self.pauses.paused(request.pausable_in, pinned.spec.name)
            if paused is not None:
                return {"paused": paused}
        digest, entries = await self.windows.window(self.client, request)
        spec = pinned.spec
        try:
            said = tuple(entries)
            tools = tuple(ModelTool(t.alias, t.description, t.input_schema) for t in spec.tools)

            async def ask(adapter: ModelAdapter, choice: ModelChoice) -> ModelReply:
                settings = choice.settings
                question = ModelRequest(
                    model=choice.name.partition(":")[2],
                    system=pinned.system,
                    entries=said,
                    tools=tools,
                    max_tokens=settings.max_tokens or MAX_TOKENS,
                    temperature=settings.temperature,
                    thinking_tokens=settings.thinking_tokens,
                    conversation=request.conversation,
                )
                return await self._in_time(adapter, question, settings.timeout_s)

            model, reply = await self.calls.reply(spec, pinned.model, ask)
        except Exception as error:
            raise model_failure(error) from None
        entry = entry_to_json(
            _assistant_message(reply, model, request.conversation, request.first_call)
        )
        if entry["blocks"]:
            entries.append(entry_from_json(entry))
            digest = chained(digest, entry)
        self.windows.keep(request.conversation, digest, entries)
        usage = reply.usage
        return {
            "entry": entry,
            "usage": {
                "input_tokens": usage.input_tokens,
                "output_tokens": usage.output_tokens,
                "cache_read_tokens": usage.cache_read_tokens,
                "cache_write_tokens": usage.cache_write_tokens,
            },
        }

    async def stop(self) -> None:
        """Close what the adapters keep open."""
        await self.calls.stop()

    async def _in_time(
        self, adapter: ModelAdapter, question: ModelRequest, timeout_s: float | None
    ) -> ModelReply:
        try:
            async with asyncio.timeout(timeout_s):
                return await self._reply(adapter, question)
        except TimeoutError:
            raise ModelUnavailable(
                f"the model gave no whole answer within {timeout_s:g} s (model.timeout)"
            ) from None

    async def _reply(self, adapter: ModelAdapter, question: ModelRequest) -> ModelReply:
        """Ask, and let whoever watches read along through the heartbeat details."""
        words: list[str] = []
        beat = asyncio.create_task(self._beat(words))
        try:
            return await adapter.reply(question, words.append)
        finally:
            beat.cancel()

    async def _beat(self, words: list[str]) -> None:
        attempt, said, quiet_s = activity.info().attempt, 0, 0.0
        # Why: what looks like the beginning of a secret waits for the words after it.
        stream = self.scrubber.stream()
        text = ""
        while True:
            if len(words) > said or quiet_s >= 1.0 or not said:
                text += stream.feed("".join(words[said:]))
                said, quiet_s = len(words), 0.0
                tail = text.encode("utf-8", "replace")[-TAIL_BYTES:].decode("utf-8", "ignore")
                activity.heartbeat(
                    {"attempt": attempt, "offset": len(text) - len(tail), "tail": tail}
                )
            await asyncio.sleep(self.models.stream_every_s)
            quiet_s += self.models.stream_every_s


def check_origin(request: Any, expected: type[Any]) -> None:
    """Refuse a request that is not sealed, or that another run than the one it names sends on.

    Raises:
        ApplicationError: not retried; nothing was done.
    """
    info = activity.info()
    if not isinstance(request, expected):
        raise ApplicationError(
            "the request does not carry the project's seal",
            type=contract.REFUSED,
            non_retryable=True,
        )
    if (
        request.conversation != info.workflow_id
        or request.run_id != info.workflow_run_id
        or info.workflow_type != contract.WORKFLOW
    ):
        raise ApplicationError(
            "the request belongs to another conversation", type=contract.REFUSED, non_retryable=True
        )


def _assistant_message(
    reply: ModelReply, model: str, conversation: str, first_call: int
) -> AssistantMessage:
    blocks: list[Block] = []
    n = first_call
    for block in reply.blocks:
        match block:
            case TextBlock(text):
                if text.strip():
                    blocks.append(TextBlock(_clean(text)))
            case OpaqueBlock():
                blocks.append(block)
            case ReplyCall(tool, value):
                usable, problem = _usable_input(value)
                blocks.append(CallBlock(f"{conversation}:{n}", _clean(tool)[:200], usable, problem))
                n += 1
    return AssistantMessage(tuple(blocks), reply.stop_reason, model)


def _usable_input(value: JsonValue) -> tuple[dict[str, JsonValue], str | None]:
    """The model's arguments as an object that history can hold, or `{}` and why not."""
    if not isinstance(value, Mapping):
        shown = json.dumps(value, default=str)[:80] if not isinstance(value, str) else value[:80]
        return {}, f"the arguments must be a JSON object; the model wrote {shown!r}"
    try:
        text = canonical_json(value)
        text.encode()
        if _depth(value) > MAX_INPUT_DEPTH:
            return {}, f"the arguments are nested more than {MAX_INPUT_DEPTH} deep"
    except UnicodeEncodeError:
        return {}, "the arguments hold half of a surrogate pair"
    except (ValueError, TypeError, RecursionError) as error:
        return {}, f"the arguments are no JSON: {error}"
    if len(text.encode()) > MAX_REPLY_BYTES:
        return {}, f"the arguments are over {MAX_REPLY_BYTES // 1024} KB"
    return dict(value), None


def _depth(value: JsonValue) -> int:
    depth, level = 0, [value]
    while level:
        depth += 1
        level = [
            inner
            for v in level
            for inner in (
                v.values() if isinstance(v, Mapping) else v if isinstance(v, list) else ()
            )
        ]
    return depth


def _clean(text: str) -> str:
    data = text.encode("utf-8", "replace")
    if len(data) > MAX_REPLY_BYTES:
        return data[:MAX_REPLY_BYTES].decode("utf-8", "ignore") + "\n[… cut here]"
    return data.decode()
