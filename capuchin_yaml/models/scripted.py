"""A model that answers from a YAML script: the one that every test and demo talks to.

The choice depends on the request alone, so a worker that is killed changes nothing. Each request
is first put into the provider's own form and held against the provider's rules.

    rules:                              # the first rule whose `when` fits answers
      - when: {user: "refund .*(A-[0-9]+)"}    # the talk ends with a message that matches
        reply: {say: "Looking.", calls: [{tool: lookup_order, args: {order_id: $1}}]}
      - when: {tool: lookup_order, result: paid}   # it ends with results, and this is one of them
        reply: {calls: [{tool: refund, args: {order_id: A-1001, amount_cents: 4999}}]}
      - when: {status: denied}          # how the call ended
        reply: {say: "I am sorry."}
      - when: {replies: 3}              # assistant messages so far
        reply: {fail: {status: 429, retry_after_s: 2, times: 1}, say: "Here I am again."}
    default: {say: "You said: $user"}   # when no rule fits
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path

from capuchin_yaml.errors import ModelRejected, ModelUnavailable
from capuchin_yaml.messages import (
    AssistantMessage,
    ModelReply,
    ModelRequest,
    Note,
    ReplyBlock,
    ReplyCall,
    StopReason,
    TextBlock,
    ToolResult,
    TranscriptEntry,
    UserMessage,
)
from capuchin_yaml.models.adapter import OnText
from capuchin_yaml.models.checked import CheckedRequests
from capuchin_yaml.models.offline import estimated_usage, speak
from capuchin_yaml.models.script_file import Failure, Script, ScriptReply, When, read_script
from capuchin_yaml.spec import JsonValue

_PLACE = re.compile(r"\$(user\b|[1-9]|\$)")
_RETRYABLE = (408, 409, 429)


class ScriptedModel:
    """Answers from one script, which is read again whenever the file changes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, int, int] | None = None
        self._script: Script | None = None
        self._checked = CheckedRequests("scripted")
        self._failed: dict[int, int] = {}
        """Failures so far, by the line of the rule; they start again when the script changes."""

    @classmethod
    def open(cls, file: str, base_dir: Path | None = None) -> ScriptedModel:
        """The model of a script, checked now.

        Raises:
            ModelRejected: the script is missing, wrong, or outside `base_dir`.
        """
        path = Path(file).expanduser() if base_dir is None else base_dir / file
        path = path.resolve()
        # Why: an agent file may be a stranger's; it cannot read outside its folder.
        if base_dir is not None and not path.is_relative_to(base_dir.resolve()):
            raise ModelRejected(
                f"the script {file!r} lies outside the agent's folder; put it beside the agent file"
            )
        model = cls(path)
        model._current()
        return model

    async def reply(self, request: ModelRequest, on_text: OnText) -> ModelReply:
        """The script's answer; `ModelAdapter.reply` says what it raises."""
        script = self._current()
        size = self._checked.size(request)
        reply, line, match = _choose(script, request.entries)
        fill = _Fill(match, _last_user_text(request.entries))
        if reply.delay_s:
            await asyncio.sleep(reply.delay_s)
        if reply.fail is not None:
            self._fail(reply.fail, line, f"{script.path}:{line}")
        if reply.refuse is not None:
            text = fill.text(reply.refuse)
            await speak(text, on_text, reply.stream_chunk_s)
            blocks: tuple[ReplyBlock, ...] = (TextBlock(text),)
        else:
            blocks = fill.blocks(reply)
            if reply.say is not None:
                await speak(fill.text(reply.say), on_text, reply.stream_chunk_s)
        usage = reply.usage if reply.usage is not None else estimated_usage(size, blocks)
        return ModelReply(blocks, _stop_reason(reply), usage)

    def _current(self) -> Script:
        try:
            stat = self._path.stat()
            seen = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        except OSError as error:
            raise ModelRejected(
                f"cannot read the script {str(self._path)!r}: {error.strerror}"
            ) from error
        if self._script is None or seen != self._seen:
            self._script = read_script(self._path)
            self._seen = seen
            self._failed.clear()
        return self._script

    def _fail(self, fail: Failure, line: int, where: str) -> None:
        done = self._failed.get(line, 0)
        if fail.times is not None and done >= fail.times:
            return
        self._failed[line] = done + 1
        sentence = f"{where}: the script fails with status {fail.status}"
        if fail.status in _RETRYABLE or fail.status >= 500:
            raise ModelUnavailable(sentence, fail.retry_after_s)
        raise ModelRejected(sentence)


class _Fill:
    """Puts what matched into the texts of a reply."""

    def __init__(self, match: re.Match[str] | None, user: str) -> None:
        self._match = match
        self._user = user

    def text(self, text: str) -> str:
        return _PLACE.sub(lambda place: self._value(place.group(1)), text)

    def blocks(self, reply: ScriptReply) -> tuple[ReplyBlock, ...]:
        said: list[ReplyBlock] = []
        if reply.say is not None:
            said.append(TextBlock(self.text(reply.say)))
        return (*said, *(ReplyCall(c.tool, self._json(c.args)) for c in reply.calls))

    def _json(self, value: JsonValue) -> JsonValue:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self._json(v) for v in value]
        if isinstance(value, dict):
            return {key: self._json(v) for key, v in value.items()}
        return value

    def _value(self, place: str) -> str:
        if place == "$":
            return "$"
        if place == "user":
            return self._user
        if self._match is None or int(place) > (self._match.re.groups):
            return ""
        return self._match.group(int(place)) or ""


def _choose(
    script: Script, entries: Sequence[TranscriptEntry]
) -> tuple[ScriptReply, int, re.Match[str] | None]:
    """The reply, the line of its rule (0 for the default) and what its pattern matched."""
    for rule in script.rules:
        fits, match = _fits(rule.when, entries)
        if fits:
            return rule.reply, rule.line, match
    if script.default is None:
        raise ModelRejected(
            f"{script.path}: the script has no reply for {_last_user_text(entries)!r} "
            f"after {_replies(entries)} replies; add a rule or a `default`"
        )
    return script.default, 0, None


def _fits(when: When, entries: Sequence[TranscriptEntry]) -> tuple[bool, re.Match[str] | None]:
    match: re.Match[str] | None = None
    if when.replies is not None and when.replies != _replies(entries):
        return False, None
    if when.note is not None:
        notes = [e.text for e in _tail(entries) if isinstance(e, Note)]
        match = _first_match(when.note, reversed(notes))
        if match is None:
            return False, None
    if when.user is not None:
        last = _last_spoken(entries)
        match = when.user.search(last.text) if isinstance(last, UserMessage) else None
        if match is None:
            return False, None
    if (when.result, when.tool, when.status) != (None, None, None):
        return _fits_result(when, entries, match)
    return True, match


def _fits_result(
    when: When, entries: Sequence[TranscriptEntry], match: re.Match[str] | None
) -> tuple[bool, re.Match[str] | None]:
    if not isinstance(_last_spoken(entries), ToolResult):
        return False, None
    for result in _tail(entries):
        if not isinstance(result, ToolResult):
            continue
        if when.tool not in (None, result.tool) or when.status not in (None, result.status):
            continue
        if when.result is None:
            return True, match
        found = when.result.search(result.text)
        if found is not None:
            return True, found
    return False, None


def _tail(entries: Sequence[TranscriptEntry]) -> list[TranscriptEntry]:
    """What came after the last assistant message."""
    start = 0
    for i, entry in enumerate(entries):
        if isinstance(entry, AssistantMessage):
            start = i + 1
    return list(entries[start:])


def _last_spoken(entries: Sequence[TranscriptEntry]) -> TranscriptEntry | None:
    return next((e for e in reversed(entries) if not isinstance(e, Note)), None)


def _last_user_text(entries: Sequence[TranscriptEntry]) -> str:
    return next((e.text for e in reversed(entries) if isinstance(e, UserMessage)), "")


def _replies(entries: Sequence[TranscriptEntry]) -> int:
    return sum(isinstance(e, AssistantMessage) for e in entries)


def _first_match(pattern: re.Pattern[str], texts: reversed[str]) -> re.Match[str] | None:
    return next((m for m in map(pattern.search, texts) if m), None)


def _stop_reason(reply: ScriptReply) -> StopReason:
    if reply.stop_reason is not None:
        return reply.stop_reason
    if reply.refuse is not None:
        return "refusal"
    return "tool_use" if reply.calls else "end_turn"
