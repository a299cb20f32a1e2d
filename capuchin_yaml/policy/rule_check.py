"""What is wrong with a rule's condition, before anything runs: names, types, constants."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from capuchin_yaml.policy.cel_text import Selection, Token, offset_of, selections, token_at, tokens
from capuchin_yaml.policy.cel_types import EACH, CheckTypes, Scope, check_types, optional_paths
from capuchin_yaml.policy.rule_literals import bad_literals, literal_help
from capuchin_yaml.policy.rules import MACROS, evaluate

NAMES = ("args", "tool", "alias", "variables", "injected", "conversation", "now")
"""What a condition may name."""
FUNCTIONS = (
    "all",
    "contains",
    "endsWith",
    "exists",
    "exists_one",
    "filter",
    "has",
    "map",
    "matches",
    "size",
    "startsWith",
)

_ERROR = re.compile(r"ERROR: <input>:(-?\d+):(-?\d+): (.*)")
_OVERLOAD = re.compile(r"found no matching overload for '([^']+)' applied to '(.*)'")
_FIELD = re.compile(r"undefined field '([^']+)' not found in struct '([^']+)'")
_REFERENCE = re.compile(r"undeclared reference to '([^']+)'")
_SELECT = re.compile(r"expression of type '([^']+)' cannot be the operand of a select")
_NUMBERS = re.compile(r"\((int|uint|double), (int|uint|double)\)|\(double, list\(int\)\)")
_COMPARISON = re.compile(r"_([<>]=?|==|!=)_|@in")
_SYMBOLS = {"and": "&&", "or": "||", "not": "!", "is": "==", "None": "null", "True": "true"}
_TYPES = {
    "int": "a whole number",
    "uint": "a whole number",
    "double": "a number",
    "string": "text",
    "bool": "true or false",
    "null_type": "null",
    "google.protobuf.Timestamp": "a time",
    "timestamp": "a time",
    "google.protobuf.Duration": "a duration",
    "duration": "a duration",
    "dyn": "a value",
}


@dataclass(frozen=True, slots=True)
class RuleProblem:
    """One thing about a condition; places are offsets into its text."""

    id: str
    message: str
    start: int
    end: int
    help: str | None = None
    is_warning: bool = False
    word: str = ""
    known: tuple[str, ...] = ()
    """What `word` may have meant, for a suggestion."""


@dataclass(frozen=True, slots=True)
class CheckedCondition:
    """A condition that was looked at."""

    problems: tuple[RuleProblem, ...]
    runs: str
    """The text to run: whole-number literals beside `number` values written with a point."""
    constant: bool | None = None
    """What it is whatever the call is, if that is certain."""


def check_condition(condition: str, scope: Scope) -> CheckedCondition:
    """Type-check a condition for every tool that its rule can be about."""
    types = check_types(scope)
    runs, shifts = condition, list[int]()
    errors, result = _compile(types, runs)
    while (at := _literal_to_widen(runs, errors)) is not None:
        runs = f"{runs[: at.end]}.0{runs[at.end :]}"
        shifts.append(at.end)
        errors, result = _compile(types, runs)
    problems: list[RuleProblem] = []
    for line, column, text in errors:
        offset = _unshifted(offset_of(runs, line, column), shifts)
        problem = _explain(condition, offset, text, types)
        follows = _SELECT.match(text) is not None and any(
            condition[p.end : offset].strip() == "" for p in problems
        )
        if problem is not None and not follows:
            problems.append(problem)
        if text.startswith("Syntax error"):
            break  # What follows a syntax error is noise.
    if not problems and result not in ("", "BOOL", "DYN"):
        problems.append(
            RuleProblem(
                "rule-type",
                f"the condition is {_type(result.lower())}, not true or false",
                0,
                len(condition),
                "compare it with something, such as == or >",
            )
        )
    if not problems:
        problems.extend(
            RuleProblem("rule-syntax", bad.message, bad.start, bad.end, bad.help)
            for bad in bad_literals(condition)
        )
    if problems:
        return CheckedCondition(tuple(problems), runs)
    return CheckedCondition(tuple(_optional(condition, scope)), runs, _constant(runs))


def _compile(types: CheckTypes, condition: str) -> tuple[list[tuple[int, int, str]], str]:
    """The errors that count, and the type of the result when there are none at all."""
    try:
        result: str = types.env.compile(condition).return_type().name()
        return [], result
    except RuntimeError as error:
        found = [(int(a), int(b), c) for a, b, c in _ERROR.findall(str(error))]
        return found or [(1, 1, str(error).splitlines()[0])], ""


def _literal_to_widen(condition: str, errors: list[tuple[int, int, str]]) -> Token | None:
    """A whole-number literal that stands beside a `number` and would be one with a point."""
    words = tokens(condition)
    for line, column, text in errors:
        overload = _OVERLOAD.match(text)
        if overload is None or not _NUMBERS.fullmatch(overload.group(2)):
            continue
        offset = offset_of(condition, line, column)
        place = next((i for i, t in enumerate(words) if t.end > offset), None)
        if place is None:
            continue
        left, _, right = overload.group(2).strip("()").partition(", ")
        if right == "int":
            for token in words[place + 1 : place + 3]:
                if token.kind == "number" and token.text.isdigit():
                    return token
                if token.text not in ("-", "("):
                    break
        if left == "int" and place and words[place - 1].kind == "number":
            return words[place - 1] if words[place - 1].text.isdigit() else None
    return None


def _unshifted(offset: int, shifts: list[int]) -> int:
    for at in reversed(shifts):
        if offset > at:
            offset = max(at, offset - 2)
    return offset


def _explain(condition: str, offset: int, text: str, types: CheckTypes) -> RuleProblem | None:
    token = token_at(condition, offset)
    start, end = (token.start, token.end) if token is not None else (offset, len(condition))
    if match := _OVERLOAD.match(text):
        return _wrong_types(condition, start, end, *match.groups())
    if match := _FIELD.match(text):
        return _unknown_field(condition, start, match.group(1), match.group(2), types)
    if match := _REFERENCE.match(text):
        return _unknown_name(condition, start, end, match.group(1), types)
    if match := _SELECT.match(text):
        message = f"{_type(match.group(1))} has no fields"
        return RuleProblem("rule-type", message, start, end, "remove the point and what follows")
    return _syntax(condition, start, end, text)


def _wrong_types(
    condition: str, start: int, end: int, function: str, types: str
) -> RuleProblem | None:
    if _COMPARISON.fullmatch(function) and _NUMBERS.fullmatch(types):
        # A number and a whole number do compare when the condition runs.
        return None
    sign = function.strip("_").replace("@in", "in").replace("?_:", "? :")
    parts = _split_types(types)
    words = [_type(part) for part in parts]
    help_ = None
    if function == "_[_]" and parts and parts[0].startswith("rule."):
        help_ = "select it with a point, such as args.name"
    elif function == "@in" and parts[-1].startswith("rule."):
        help_ = "ask with has(args.name)"
    elif "null_type" in parts:
        help_ = "ask with !has(args.name)"
    elif _COMPARISON.fullmatch(function) and len(parts) == 2:
        help_ = literal_help(condition, end, *parts)
    elif sign in ("+", "-", "*", "/", "%") and set(parts) == {"int", "double"}:
        help_ = "convert one side: double(args.name)"
    help_ = help_ or _conversion(sign, parts)
    if len(words) == 2:
        message = f"{sign!r} does not go between {words[0]} and {words[1]}"
    elif len(words) == 1:
        message = f"{sign!r} does not take {words[0]}"
    else:
        message = f"{sign!r} does not take {', '.join(words)}"
    if function == "@in":
        message = f"'in' does not look for {words[0]} in {words[1]}"
    elif function == "_[_]":
        message = f"{words[0]} is not indexed by {words[1]}"
    return RuleProblem("rule-type", message, start, end, help_)


def _conversion(sign: str, parts: list[str]) -> str:
    """What to type where two values, or a value and a function, do not go together."""
    kinds = set(parts)
    if sign in ("&&", "||", "!", "? :"):
        return "compare it with something, such as == or >"
    if len(kinds) == 2 and "string" in kinds and kinds & {"int", "double", "uint"}:
        return "convert one side: string(…), or int(…) of a text of digits"
    if any(part in ("timestamp", "google.protobuf.Timestamp") for part in parts):
        return "compare a time with a time: timestamp('2030-01-31T00:00:00Z')"
    if any(part in ("duration", "google.protobuf.Duration") for part in parts):
        return "write a duration: duration('1h30m')"
    if "bool" in kinds:
        return "write it without the comparison, or with ! in front"
    if any(part.startswith("list") for part in parts):
        return "ask with … in args.list, or with args.list.exists(item, item == …)"
    return "compare values of one type"


def _unknown_field(
    condition: str, start: int, name: str, struct_name: str, types: CheckTypes
) -> RuleProblem:
    struct = types.structs.get(struct_name)
    path, known = (struct.path, struct.fields) if struct is not None else ("", ())
    token = next(
        (t for t in tokens(condition) if t.start >= start and t.text == name),
        token_at(condition, start),
    )
    at = (token.start, token.end) if token is not None else (start, len(condition))
    listed = ", ".join(known[:20]) or "nothing"
    declare = {
        "variables": f"add variables: {{{name}: {{}}}}",
        "injected": f"add injected: [{name}]",
    }
    return RuleProblem(
        "rule-unknown-name",
        f"{path} has no {name!r}; it has {listed}",
        *at,
        declare.get(path) if not known else f"write {path}.{known[0]}" if len(known) == 1 else None,
        word=name,
        known=known,
    )


def _unknown_name(
    condition: str, start: int, end: int, name: str, types: CheckTypes
) -> RuleProblem:
    name = name.split(".", 1)[0]
    called = condition[end:].lstrip().startswith("(") or condition[start:end] == "("
    words = tokens(condition)
    if condition[start:end] == ".":
        # CEL points at the field of a name that it does not know.
        before = [t for t in words if t.text == name and t.start < start]
        start, end = (before[-1].start, before[-1].end) if before else (start, end)
    if condition[start:end] == "(":
        place = next(i for i, t in enumerate(words) if t.start == start)
        start, end = (words[place - 1].start, words[place - 1].end) if place else (start, end)
    if called:
        return RuleProblem(
            "rule-unknown-name",
            f"no function {name!r} takes these values",
            start,
            end,
            word=name,
            known=FUNCTIONS,
        )
    args = types.structs.get("rule.Args")
    if args is not None and name in args.fields:
        return RuleProblem(
            "rule-unknown-name",
            f"{name!r} is an argument of the tool, not a name of its own",
            start,
            end,
            f"write args.{name}",
        )
    return RuleProblem(
        "rule-unknown-name",
        f"a condition knows no {name!r}; it knows {', '.join(NAMES)}",
        start,
        end,
        word=name,
        known=NAMES,
    )


def _syntax(condition: str, start: int, end: int, text: str) -> RuleProblem:
    for i, token in enumerate(words := tokens(condition)):
        if token.kind == "name" and token.text in _SYMBOLS:
            return RuleProblem(
                "rule-syntax",
                f"{token.text!r} is no word of a condition",
                token.start,
                token.end,
                f"write {_SYMBOLS[token.text]}",
            )
        doubled = i + 1 < len(words) and words[i + 1].text in ("=", "==")
        if token.text == "=" and not doubled:
            return RuleProblem(
                "rule-syntax", "a single '=' compares nothing", token.start, token.end, "write =="
            )
    if not condition.strip():
        help_ = "write when: args.amount > 100, or remove the line"
        return RuleProblem("rule-syntax", "the condition is empty", 0, len(condition), help_)
    if "<EOF>" in text and "mismatched input" in text:
        # The place of the end is none of a word; the last one is what is not finished.
        last = words[-1] if words else Token("sign", "", 0, len(condition))
        return RuleProblem(
            "rule-syntax",
            f"the condition ends after {last.text!r}, where more must follow",
            last.start,
            last.end,
            f"remove {last.text}, or write what follows it",
        )
    said = text.removeprefix("Syntax error: ").split(" [INVALID_ARGUMENT]")[0]
    said = re.sub(r" expecting \{.*", "", said).replace("'<EOF>'", "the end")
    said = said.replace("<EOF>", "the end")
    missing = re.match(r"missing '([)\]}])'", said)
    help_ = f"close it with {missing.group(1)}" if missing else "remove it, or put text in quotes"
    return RuleProblem("rule-syntax", f"the condition cannot be read: {said}", start, end, help_)


def _optional(condition: str, scope: Scope) -> Iterator[RuleProblem]:
    """Names that a call may leave out, used without asking whether they are there."""
    optional: set[tuple[str, ...]] = set()
    if scope.args is not None:
        optional |= set(optional_paths(scope.args, ("args",)))
    optional |= {
        ("variables", name)
        for name, spec in (scope.variables or {}).items()
        if not spec.required and spec.default is None
    }
    used = [_resolved(s, condition) for s in selections(condition)]
    asked = {s.path for s in used if s.guarded}
    said: set[tuple[str, ...]] = set()
    for selection in used:
        for length in range(2, len(selection.path) + (0 if selection.guarded else 1)):
            path = selection.path[:length]
            if path not in optional or path in asked or path in said:
                continue
            said.add(path)
            name = condition[selection.start : selection.end]
            name = ".".join(name.split(".")[: name.count(".") + 1 - len(selection.path) + length])
            yield RuleProblem(
                "rule-optional-name",
                f"{name} may be absent, and then this rule cannot be evaluated",
                selection.start,
                selection.start + len(name),
                f"write has({name}) && …",
                is_warning=True,
            )


def _resolved(selection: Selection, condition: str) -> Selection:
    """The selection with the name of a macro's item, such as `line`, as the list it comes from."""
    bound = _bound_names(condition)
    path = selection.path
    for _ in bound:
        if path[0] not in bound:
            break
        path = (*bound[path[0]], EACH, *path[1:])
    return Selection(path, selection.start, selection.end, selection.guarded)


def _bound_names(condition: str) -> dict[str, tuple[str, ...]]:
    """Names that macros such as `args.lines.exists(line, …)` give to items, with their list."""
    found: dict[str, tuple[str, ...]] = {}
    words = tokens(condition)
    for selection in selections(condition):
        after = [t.text for t in words if t.start >= selection.end][:5]
        match after:
            case [".", macro, "(", name, ","] if macro in MACROS and name not in NAMES:
                found[name] = selection.path
            case _:
                continue
    return found


def _constant(condition: str) -> bool | None:
    """What the condition is without any call to look at, if that can be said."""
    value = evaluate(condition, {})
    return value if isinstance(value, bool) else None


def _split_types(types: str) -> list[str]:
    inner = types[types.find("(") + 1 : -1]
    parts, depth, last = [], 0, 0
    for i, char in enumerate(inner):
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            parts.append(inner[last:i].strip())
            last = i + 1
    parts.append(inner[last:].strip())
    receiver = types[: types.find(".(")] if ".(" in types and not types.startswith("(") else ""
    return [p for p in (receiver, *parts) if p]


def _type(name: str) -> str:
    if name in _TYPES:
        return _TYPES[name]
    if name.startswith("list"):
        return "a list"
    return "a map"
