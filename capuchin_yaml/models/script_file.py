"""Reads the script of a scripted model: YAML in, rules out, every mistake named by its line."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn, cast, get_args

import yaml

from capuchin_yaml.errors import ModelRejected
from capuchin_yaml.messages import ResultStatus, StopReason, Usage
from capuchin_yaml.spec import JsonValue

_MAX_BYTES = 4 * 1024 * 1024
_MAX_NODES = 200_000
_OVERLOADED = 529
_NULLS = ("", "~", "null", "Null", "NULL")
_BOOLEANS = {w: w.lower() == "true" for w in ("true", "True", "TRUE", "false", "False", "FALSE")}
_INT = re.compile(r"[-+]?[0-9]{1,4000}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_PLAIN_TAGS = frozenset(
    "tag:yaml.org,2002:" + name
    for name in ["str", "int", "float", "bool", "null", "timestamp", "merge", "value", "map", "seq"]
)
"""What an untagged node resolves to."""


@dataclass(frozen=True, slots=True)
class ScriptCall:
    """A tool call to make; `args` is whatever JSON the script wants the model to write."""

    tool: str
    args: JsonValue


@dataclass(frozen=True, slots=True)
class Failure:
    """An answer of the provider that is no reply."""

    status: int = _OVERLOADED
    retry_after_s: float | None = None
    times: int | None = None
    """How often before the rule replies after all; None is always."""


@dataclass(frozen=True, slots=True)
class ScriptReply:
    """What to answer; `$1`..`$9` and `$user` in texts are filled in later."""

    say: str | None = None
    """None says nothing; an empty text is said as an empty block."""
    calls: tuple[ScriptCall, ...] = ()
    stop_reason: StopReason | None = None
    """None is what follows from the calls."""
    delay_s: float = 0.0
    stream_chunk_s: float = 0.0
    usage: Usage | None = None
    """None is estimated."""
    fail: Failure | None = None
    refuse: str | None = None


@dataclass(frozen=True, slots=True)
class When:
    """All of what is given must fit the request."""

    user: re.Pattern[str] | None = None
    result: re.Pattern[str] | None = None
    tool: str | None = None
    status: str | None = None
    note: re.Pattern[str] | None = None
    replies: int | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """One `when` and its reply."""

    when: When
    reply: ScriptReply
    line: int


@dataclass(frozen=True, slots=True)
class Script:
    """A whole script; the first rule that fits answers."""

    path: str
    rules: tuple[Rule, ...]
    default: ScriptReply | None


def read_script(path: Path) -> Script:
    """Read and check a script.

    Raises:
        ModelRejected: the file cannot be read, is no YAML, or says something a script cannot.
    """
    try:
        size = path.stat().st_size
        if size > _MAX_BYTES:
            raise ModelRejected(f"the script {str(path)!r} has {size} bytes; at most {_MAX_BYTES}")
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ModelRejected(f"cannot read the script {str(path)!r}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ModelRejected(f"the script {str(path)!r} is not UTF-8") from error
    return parse_script(text, str(path))


def parse_script(text: str, path: str) -> Script:
    """Check the text of a script; `path` is only for messages.

    Raises:
        ModelRejected: as `read_script`.
    """
    reader = _Reader(path)
    top = reader.document(text)
    known = ("rules", "default")
    reader.check_keys(top, known, "a script")
    rules = tuple(_rule(reader, node) for node in reader.sequence(top.get("rules"), "rules"))
    default = _reply(reader, top.at("default")) if "default" in top.items else None
    return Script(path, rules, default)


@dataclass(frozen=True, slots=True)
class _Node:
    """A value with the line it stands on."""

    value: JsonValue
    """Scalars as themselves; None for a mapping or a list."""
    line: int
    items: Mapping[str, _Node] = field(default_factory=dict)
    entries: tuple[_Node, ...] = ()
    shape: str = "scalar"

    def get(self, key: str) -> _Node | None:
        return self.items.get(key)

    def at(self, key: str) -> _Node:
        return self.items[key]

    def plain(self) -> JsonValue:
        """The JSON value of the whole node."""
        if self.shape == "mapping":
            return {key: node.plain() for key, node in self.items.items()}
        if self.shape == "list":
            return [node.plain() for node in self.entries]
        return self.value


class _Reader:
    """Turns YAML nodes into values that remember their line."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._count = 0

    def refuse(self, line: int, sentence: str) -> NoReturn:
        raise ModelRejected(f"{self._path}:{line}: {sentence}")

    def document(self, text: str) -> _Node:
        loader: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        try:
            root = yaml.compose(text, Loader=loader)
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark else 1
            self.refuse(line, f"not YAML: {error.problem or error.context}")
        except yaml.YAMLError as error:
            self.refuse(1, f"not YAML: {error}")
        except RecursionError:
            self.refuse(1, "nested too deep")
        if root is None:
            self.refuse(1, "an empty script; it needs `rules` or `default`")
        node = self._node(root, ())
        if node.shape != "mapping":
            self.refuse(node.line, "a script is a mapping with `rules` and `default`")
        return node

    def _node(self, node: yaml.Node, above: tuple[int, ...]) -> _Node:
        line = node.start_mark.line + 1
        self._count += 1
        if id(node) in above or self._count > _MAX_NODES or len(above) > 100:
            self.refuse(line, "too many or endless aliases")
        if node.tag not in _PLAIN_TAGS:
            self.refuse(line, f"the tag {node.tag!r} is not allowed")
        above = (*above, id(node))
        if isinstance(node, yaml.SequenceNode):
            return _Node(
                None, line, entries=tuple(self._node(n, above) for n in node.value), shape="list"
            )
        if isinstance(node, yaml.MappingNode):
            items: dict[str, _Node] = {}
            for key_node, value_node in node.value:
                key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
                if key is None or key in items:
                    self.refuse(
                        key_node.start_mark.line + 1,
                        f"the key {key!r} is there twice" if key else "a key must be text",
                    )
                items[key] = self._node(value_node, above)
            return _Node(None, line, items=items, shape="mapping")
        quoted = isinstance(node, yaml.ScalarNode) and bool(node.style)
        return _Node(_scalar(node.value, quoted=quoted), line)

    def check_keys(self, node: _Node, known: tuple[str, ...], what: str) -> None:
        if node.shape != "mapping":
            self.refuse(node.line, f"{what} is a mapping with some of: {', '.join(known)}")
        for key, inner in node.items.items():
            if key not in known:
                close = difflib.get_close_matches(key, known, n=1)
                hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"
                self.refuse(inner.line, f"{what} has no key {key!r}; {hint}")

    def sequence(self, node: _Node | None, what: str) -> tuple[_Node, ...]:
        if node is None:
            return ()
        if node.shape != "list":
            self.refuse(node.line, f"{what} must be a list")
        return node.entries

    def text(self, node: _Node | None, what: str) -> str | None:
        if node is None:
            return None
        if not isinstance(node.value, str):
            self.refuse(node.line, f"{what} must be text; put it in quotes")
        return node.value

    def pattern(self, node: _Node | None, what: str) -> re.Pattern[str] | None:
        source = self.text(node, what)
        if node is None or source is None:
            return None
        try:
            return re.compile(source, re.IGNORECASE | re.DOTALL)
        except re.error as error:
            self.refuse(node.line, f"{what} is not a regular expression: {error}")

    def number(self, node: _Node | None, what: str) -> float | None:
        if node is None:
            return None
        value = node.value
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not math.isfinite(value)
        ):
            self.refuse(node.line, f"{what} must be a number")
        if value < 0:
            self.refuse(node.line, f"{what} must not be negative")
        return float(value)

    def count(self, node: _Node | None, what: str) -> int | None:
        if node is None:
            return None
        if isinstance(node.value, bool) or not isinstance(node.value, int) or node.value < 0:
            self.refuse(node.line, f"{what} must be a whole number that is not negative")
        return node.value

    def choice(self, node: _Node | None, known: tuple[str, ...], what: str) -> str | None:
        value = self.text(node, what)
        if node is not None and value not in known:
            self.refuse(node.line, f"{what} must be one of: {', '.join(known)}")
        return value


def _scalar(text: str, *, quoted: bool) -> JsonValue:
    """The value that YAML 1.2 gives a scalar: `no` and `12:30` are text, as in agent files."""
    if quoted:
        return text
    if text in _NULLS:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if _INT.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text) and math.isfinite(number := float(text)):
        return number
    return text


def _rule(reader: _Reader, node: _Node) -> Rule:
    reader.check_keys(node, ("when", "reply"), "a rule")
    for key in ("when", "reply"):
        if key not in node.items:
            reader.refuse(node.line, f"a rule needs `{key}`")
    return Rule(_when(reader, node.at("when")), _reply(reader, node.at("reply")), node.line)


def _when(reader: _Reader, node: _Node) -> When:
    known = ("user", "result", "tool", "status", "note", "replies")
    reader.check_keys(node, known, "`when`")
    if not node.items:
        reader.refuse(node.line, "`when` is empty; for a reply that always fits use `default`")
    return When(
        user=reader.pattern(node.get("user"), "user"),
        result=reader.pattern(node.get("result"), "result"),
        tool=reader.text(node.get("tool"), "tool"),
        status=reader.choice(node.get("status"), get_args(ResultStatus), "status"),
        note=reader.pattern(node.get("note"), "note"),
        replies=reader.count(node.get("replies"), "replies"),
    )


def _reply(reader: _Reader, node: _Node) -> ScriptReply:
    known = (
        "say",
        "calls",
        "stop_reason",
        "delay_s",
        "stream_chunk_s",
        "usage",
        "fail",
        "refuse",
    )
    reader.check_keys(node, known, "a reply")
    stop = reader.choice(node.get("stop_reason"), get_args(StopReason), "stop_reason")
    fail, usage = node.get("fail"), node.get("usage")
    return ScriptReply(
        say=reader.text(node.get("say"), "say"),
        calls=tuple(_call(reader, n) for n in reader.sequence(node.get("calls"), "calls")),
        stop_reason=cast("StopReason | None", stop),
        delay_s=reader.number(node.get("delay_s"), "delay_s") or 0.0,
        stream_chunk_s=reader.number(node.get("stream_chunk_s"), "stream_chunk_s") or 0.0,
        usage=_usage(reader, usage) if usage is not None else None,
        fail=_failure(reader, fail) if fail is not None else None,
        refuse=reader.text(node.get("refuse"), "refuse"),
    )


def _call(reader: _Reader, node: _Node) -> ScriptCall:
    reader.check_keys(node, ("tool", "args"), "a call")
    tool = reader.text(node.get("tool"), "tool")
    if tool is None:
        reader.refuse(node.line, "a call needs `tool`")
    args = node.get("args")
    return ScriptCall(tool, args.plain() if args is not None else {})


def _usage(reader: _Reader, node: _Node) -> Usage:
    known = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
    reader.check_keys(node, known, "usage")
    return Usage(**{key: reader.count(inner, key) or 0 for key, inner in node.items.items()})


def _failure(reader: _Reader, node: _Node) -> Failure:
    reader.check_keys(node, ("status", "retry_after_s", "times"), "fail")
    status = reader.count(node.get("status"), "status")
    if status is not None and not 400 <= status <= 599:
        reader.refuse(node.at("status").line, "status must be between 400 and 599")
    return Failure(
        status=status if status is not None else _OVERLOADED,
        retry_after_s=reader.number(node.get("retry_after_s"), "retry_after_s"),
        times=reader.count(node.get("times"), "times"),
    )
