"""Rules whose condition cannot be evaluated for a tool, whatever its call is."""

from __future__ import annotations

from dataclasses import replace

from capuchin_yaml.policy.cel_text import selections, tokens
from capuchin_yaml.policy.cel_types import numeric_names, plain_schema
from capuchin_yaml.policy.rules import MACROS
from capuchin_yaml.spec import RuleSpec, ToolSpec

_MAY_PASS_OVER = frozenset({"&&", "||", "?", "has", *MACROS})
"""With one of these CEL may come to an answer without a value that is not there."""


def as_it_answers(rule: RuleSpec, tool: ToolSpec) -> RuleSpec:
    """The rule as it is for a tool that it is about: one that always fails always answers.

    It answers deny if it says deny, else ask, and its reason says what it misses.
    """
    missing = _always_missing(rule.when, tool) if rule.when is not None else None
    if missing is None:
        return rule
    reason = f"its condition cannot be evaluated, because this tool has no {missing}"
    return replace(rule, then="deny" if rule.then == "deny" else "ask", when=None, reason=reason)


def _always_missing(condition: str, tool: ToolSpec) -> str | None:
    """What the condition reads and no call of the tool has; None where that is not certain."""
    if any(word.text in _MAY_PASS_OVER for word in tokens(condition)):
        return None
    schema = plain_schema(tool.input_schema)
    for selection in selections(condition):
        match selection.path:
            case ("args", name, *_):
                is_closed = schema.get("additionalProperties") is False
                if is_closed and name not in schema.get("properties", {}):
                    return f"args.{name}"
            case ("conversation", "total", name, *_):
                if name not in numeric_names(schema):
                    return f"conversation.total.{name}"
    return None
