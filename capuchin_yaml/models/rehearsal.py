"""A model that needs no key: it picks tools by the words of the message, so any agent can be tried.

It keeps nothing and guesses the same way every time. It calls a tool at most once per message,
looks things up before it acts, and stops at the first call that did not go well.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from capuchin_yaml.messages import (
    AssistantMessage,
    CallBlock,
    ModelReply,
    ModelRequest,
    ModelTool,
    ReplyBlock,
    ReplyCall,
    ResultStatus,
    TextBlock,
    ToolResult,
    TranscriptEntry,
    UserMessage,
)
from capuchin_yaml.models.adapter import OnText
from capuchin_yaml.models.checked import CheckedRequests
from capuchin_yaml.models.guess.arguments import Filled, fill
from capuchin_yaml.models.guess.reading import Reading
from capuchin_yaml.models.guess.tool_choice import Choice, tools_for
from capuchin_yaml.models.offline import estimated_usage, speak
from capuchin_yaml.spec import JsonValue
from capuchin_yaml.terminal_text import one_line

MARK = "[rehearsal]"
"""Begins every reply, so that nobody takes it for a model's."""
_MOST_CALLS = 4
_MOST_SHOWN = 300
_ENDED: Mapping[ResultStatus, str] = {
    "denied": "was not allowed",
    "expired": "was not decided in time",
    "error": "failed",
    "cancelled": "was cancelled",
    "invalid": "could not be called",
    "unknown": "may or may not have happened",
    "skipped": "was not tried",
}


class RehearsalModel:
    """The model that `rehearsal` names."""

    def __init__(self) -> None:
        self._checked = CheckedRequests("rehearsal")

    async def reply(self, request: ModelRequest, on_text: OnText) -> ModelReply:
        """The next step of the rehearsal; `ModelAdapter.reply` says what it raises."""
        size = self._checked.size(request)
        sentence, call = _next(request)
        text = f"{MARK} {sentence}"
        await speak(text, on_text)
        blocks: tuple[ReplyBlock, ...] = (TextBlock(text), *((call,) if call else ()))
        usage = estimated_usage(size, blocks)
        return ModelReply(blocks, "tool_use" if call else "end_turn", usage)


def _next(request: ModelRequest) -> tuple[str, ReplyCall | None]:
    """What to say, and the call to make, if any."""
    turn = _Turn.of(request.entries)
    if turn is None:
        return "Say something, and I rehearse what this agent would do.", None
    troubles = [r for r in turn.results if r.status != "ok"]
    if troubles:
        return _apology(troubles), None
    choice = _choose(request, turn) if len(turn.called) < _MOST_CALLS else None
    if choice is not None:
        tool, filled = choice
        verb = "look this up with" if tool.looks_up else "call"
        return f"I {verb} {tool.name}.", ReplyCall(tool.name, filled.arguments)
    if turn.results:
        return _summary(turn.results), None
    return _no_tool(request.tools), None


@dataclass(frozen=True, slots=True)
class _Turn:
    """What happened since the last message of the user."""

    message: str
    called: frozenset[str]
    results: tuple[ToolResult, ...]
    earlier: tuple[ToolResult, ...]
    """Results of the turns before."""

    @classmethod
    def of(cls, entries: Sequence[TranscriptEntry]) -> _Turn | None:
        starts = [i for i, e in enumerate(entries) if isinstance(e, UserMessage)]
        if not starts:
            return None
        start = starts[-1]
        message = entries[start]
        since = entries[start + 1 :]
        called = {
            block.tool
            for entry in since
            if isinstance(entry, AssistantMessage)
            for block in entry.blocks
            if isinstance(block, CallBlock)
        }
        return cls(
            message.text if isinstance(message, UserMessage) else "",
            frozenset(called),
            tuple(e for e in since if isinstance(e, ToolResult)),
            tuple(e for e in entries[:start] if isinstance(e, ToolResult)),
        )


def _choose(request: ModelRequest, turn: _Turn) -> tuple[Choice, Filled] | None:
    """The next call: a look-up that can be made, then an act, then whatever must be made up."""
    reading = Reading(turn.message)
    # Why: "refund it" means what was talked about before; a message with an id of its own does not.
    results = turn.results if reading.ids else (*turn.earlier, *turn.results)
    facts = _facts(results)
    fitting = [c for c in tools_for(reading, request.tools) if c.name not in turn.called]
    if any(c.by_description for c in fitting) and turn.called:
        return None
    options = [(c, fill(c.tool.input_schema, reading, facts)) for c in fitting]
    for looks_up in (True, False):
        for choice, filled in options:
            if choice.looks_up == looks_up and not filled.invented:
                return choice, filled
    # Why: what a look-up did not give is not made up afterwards; before any call it is, so that
    # every tool can be tried.
    made_up = next(iter(options), None) if not turn.called else None
    return _feeder(request, turn, options, reading, facts) or made_up


def _feeder(
    request: ModelRequest,
    turn: _Turn,
    options: Sequence[tuple[Choice, Filled]],
    reading: Reading,
    facts: Mapping[str, JsonValue],
) -> tuple[Choice, Filled] | None:
    """A look-up that the message does not name, but that may know what an act still lacks."""
    acts = [c for c, _ in options if not c.looks_up]
    if not acts or not reading.ids:
        return None
    wanted = set(acts[0].tool.input_schema.get("properties", {}))
    for tool in request.tools:
        choice = Choice.of(tool)
        if not choice.looks_up or tool.name in turn.called:
            continue
        filled = fill(tool.input_schema, reading, facts)
        if wanted & filled.arguments.keys() and not filled.invented:
            return choice, filled
    return None


def _facts(results: Sequence[ToolResult]) -> dict[str, JsonValue]:
    """Values by key of all JSON results that went well; the newest and outermost wins."""
    facts: dict[str, JsonValue] = {}
    for result in results:
        if result.status != "ok" or not result.text.lstrip().startswith(("{", "[")):
            continue
        try:
            value = json.loads(result.text)
        except (ValueError, RecursionError):
            continue
        facts.update(_by_key(value))
    return facts


def _by_key(value: JsonValue) -> dict[str, JsonValue]:
    out: dict[str, JsonValue] = {}
    level = [value]
    for _ in range(6):
        deeper: list[JsonValue] = []
        for node in level:
            if isinstance(node, dict):
                for key, inner in node.items():
                    if inner is not None:
                        out.setdefault(key, inner)
                deeper += node.values()
            elif isinstance(node, list):
                deeper += node[:20]
        level = deeper
    return out


def _summary(results: Sequence[ToolResult]) -> str:
    names = list(dict.fromkeys(r.tool for r in results))
    last = results[-1]
    return f"Done: I called {' and then '.join(names)}. {last.tool} answered: {_shown(last)}"


def _apology(troubles: Sequence[ToolResult]) -> str:
    parts = [f"{r.tool} {_ENDED.get(r.status, r.status)}: {_shown(r)}" for r in troubles]
    return f"I am sorry. {' '.join(parts)}"


def _shown(result: ToolResult) -> str:
    return one_line(result.text, _MOST_SHOWN) or "(no output)"


def _no_tool(tools: Sequence[ModelTool]) -> str:
    names = ", ".join(t.name for t in tools)
    have = f"None of its tools fits your message: {names}." if names else "It has no tools."
    return f"I am the rehearsal model: no language model answers for this agent. {have}"
