"""The values that whoever starts a conversation gives, checked against the agent."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping

from capuchin_yaml.compiler.bind_variables import fits, type_words
from capuchin_yaml.compiler.nearest import nearest
from capuchin_yaml.compiler.wording import shown
from capuchin_yaml.errors import RequestRefused
from capuchin_yaml.spec import AgentSpec, JsonValue, VariableSpec

MAX_VALUE_CHARS = 65_536
"""Longest text of one given value."""

_WHOLE = re.compile(r"[+-]?[0-9]{1,30}")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")


def check_variables(spec: AgentSpec, given: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """The value of every variable: those given, converted to their type, and the defaults.

    Text is read as the declared type (`"3"` for an integer, `"true"` for a boolean). An optional
    variable with no default that is not given has no value.

    Raises:
        RequestRefused: names every variable that is missing, unknown, or of the wrong type.
    """
    problems = _unknown("variable", given, spec.variables)
    values: dict[str, JsonValue] = {}
    for name, variable in spec.variables.items():
        if name in given:
            value, problem = _converted(variable, given[name])
            if problem is not None:
                problems.append(f"{name} {problem}")
            else:
                values[name] = value
        elif variable.default is not None:
            values[name] = variable.default
        elif variable.required:
            problems.append(f"{name} is missing (--var {name}=…)")
    _refuse(spec, problems)
    return values


def check_injected(spec: AgentSpec, given: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """The injected values, exactly those that the agent declares.

    Raises:
        RequestRefused: names every value that is missing, unknown, or not plain JSON.
    """
    problems = _unknown("injected value", given, dict.fromkeys(spec.injected))
    values: dict[str, JsonValue] = {}
    for name in spec.injected:
        if name not in given:
            problems.append(f"{name} is missing (--set {name}=…)")
        elif (problem := _not_storable(given[name])) is not None:
            problems.append(f"{name} {problem}")
        else:
            values[name] = given[name]
    _refuse(spec, problems)
    return values


def _converted(variable: VariableSpec, given: JsonValue) -> tuple[JsonValue, str | None]:
    value = _from_text(variable, given) if isinstance(given, str) else given
    if not fits(variable.type, value) or (isinstance(value, float) and not math.isfinite(value)):
        return None, f"must be {type_words(variable.type)}, not {shown(str(given))}"
    problem = _not_storable(value)
    if problem is not None:
        return None, problem
    if variable.enum and value not in variable.enum:
        return None, f"must be one of {', '.join(shown(str(v)) for v in variable.enum)}"
    return value, None


def _from_text(variable: VariableSpec, text: str) -> JsonValue:
    match variable.type:
        case "integer" if _WHOLE.fullmatch(text):
            return int(text)
        case "number" if _WHOLE.fullmatch(text):
            return int(text)
        case "number" if _NUMBER.fullmatch(text):
            return float(text)
        case "boolean" if text in ("true", "false"):
            return text == "true"
        case _:
            return text


def _not_storable(value: JsonValue) -> str | None:
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        text.encode("utf-8")
    except (TypeError, ValueError, RecursionError):
        return "is not plain JSON of valid text"
    return f"is longer than {MAX_VALUE_CHARS} characters" if len(text) > MAX_VALUE_CHARS else None


def _unknown(kind: str, given: Mapping[str, JsonValue], known: Mapping[str, object]) -> list[str]:
    problems: list[str] = []
    for name in given:
        if name not in known:
            meant = nearest(name, known)
            hint = f", did you mean {meant!r}?" if meant is not None else ""
            problems.append(f"{shown(name)} is no {kind} of this agent{hint}")
    return problems


def _refuse(spec: AgentSpec, problems: list[str]) -> None:
    if problems:
        raise RequestRefused(f"agent {spec.name!r}: {'; '.join(problems)}")
