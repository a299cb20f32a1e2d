"""A waiting item on paper: every part that a decision is bound to, and what to type."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from capuchin_yaml.cli.clock import distance, local_time
from capuchin_yaml.cli.floor_text import floor_of
from capuchin_yaml.cli.output import Ink, Output, Part
from capuchin_yaml.items import Item, unanswerable, who_has, who_may
from capuchin_yaml.spec import JsonValue, canonical_json

DIGEST_SHOWN = 12
MIN_DIGEST = 8


def item_lines(item: Item) -> Iterator[tuple[Part, ...]]:
    """The whole item, one line each, the identity before the alias."""
    yield (Ink(item.title or item.kind, "bold"),)
    yield from _call_lines(item)
    for name, values in (("config", item.config), ("injected", item.injected)):
        if values:
            yield _field(name, canonical_json(dict(values)))
    for i, line in enumerate(item.preview.splitlines()):
        yield _field("preview" if i == 0 else "", line)
    if item.reason:
        yield _field("why", item.reason)
    if item.rule:
        yield _field("rule", item.rule)
    for said in floor_of(item.tool, item.alias) if item.kind == "approval" else ():
        yield _field("floor", said)
    yield _field("conversation", item.conversation)
    if item.definition_hash:
        yield _field("definition", item.definition_hash[:DIGEST_SHOWN])
    yield _field("asked", f"{local_time(item.requested_at)} ({distance(item.requested_at)})")
    yield from _waiting_lines(item)
    yield _field("digest", f"{item.digest} (revision {item.revision})")


def _call_lines(item: Item) -> Iterator[tuple[Part, ...]]:
    """What would run, the identity before the alias."""
    if item.tool:
        yield _field("tool", item.tool)
        if item.alias and item.alias != item.tool.rpartition(".")[2]:
            yield _field("seen as", item.alias)
    if item.effect:
        yield _field("effect", item.effect)
    if item.distribution:
        yield _field("package", item.distribution)
    if item.arguments:
        yield _field("arguments", item.arguments)


def _waiting_lines(item: Item) -> Iterator[tuple[Part, ...]]:
    """Who may decide, who has, and what the clock does."""
    if may := who_may(item):
        yield _field("may decide", may)
    if has := who_has(item):
        yield _field("approved", has)
    if item.escalated:
        yield _field("escalated", f"to {item.escalated}: nobody decided in time")
    if item.remind_at:
        yield _field("reminder", f"{local_time(item.remind_at)} ({distance(item.remind_at)})")
    if item.due:
        yield _field("due", f"{local_time(item.due)} ({distance(item.due)}), then {_then(item)}")


def _then(item: Item) -> str:
    return f"{item.escalate_to} may decide as well" if item.then == "escalate" else item.then


def print_item(out: Output, item: Item, *, how_decided: str = "", to_stderr: bool = False) -> None:
    """Show the whole item, then what to type, or how it was decided."""
    write = out.tell if to_stderr else out.answer
    for line in item_lines(item):
        write(*line)
    if how_decided:
        write(*_field("decided", how_decided))
    elif not to_stderr:
        for command in decide_commands(item):
            write(*_field("to decide", command))
        if not decide_commands(item):
            write(*_field("to decide", unanswerable(item.kind, item.conversation)))


def decide_commands(item: Item) -> tuple[str, ...]:
    """What a person types to answer this item."""
    digest = item.digest[:DIGEST_SHOWN]
    match item.kind:
        case "approval":
            return (
                f"capuchin inbox approve {item.id} --digest {digest}",
                f"capuchin inbox deny {item.id} --digest {digest} --reason TEXT",
            )
        case "outcome":
            return (
                f"capuchin inbox answer {item.id} happened --digest {digest} --result TEXT",
                f"capuchin inbox answer {item.id} rerun --digest {digest}",
                f"capuchin inbox answer {item.id} failed --digest {digest}",
            )
        case "limit":
            return (
                f"capuchin inbox answer {item.id} go_on --digest {digest}",
                f"capuchin inbox answer {item.id} stop --digest {digest}",
            )
        case _:
            return ()


def item_json(item: Item) -> dict[str, JsonValue]:
    """The item in the form of `inbox list --json`, with all that `show` has."""
    return {
        "v": 1,
        "id": item.id,
        "kind": item.kind,
        "conversation": item.conversation,
        "tool": item.tool,
        "alias": item.alias,
        "summary": item.title,
        "args": arguments_json(item.arguments),
        "arguments": item.arguments,
        "preview": item.preview,
        "digest": item.digest,
        "revision": item.revision,
        "requested_at": item.requested_at,
        "due": item.due,
        "then": item.then,
        "effect": item.effect,
        "package": item.distribution,
        "config": None if item.config is None else dict(item.config),
        "injected": None if item.injected is None else dict(item.injected),
        "definition_hash": item.definition_hash,
        "reason": item.reason,
        "rule": item.rule,
        "floor": floor_of(item.tool, item.alias) if item.kind == "approval" else [],
        "requested_by": item.requested_by,
        "approvers": list(item.approvers),
        "may_decide": list(item.may_decide),
        "quorum": item.quorum,
        "exclude": list(item.exclude),
        "votes": [dict(vote) for vote in item.votes],
        "needed": item.needed,
        "remind_at": item.remind_at,
        "escalate_to": item.escalate_to,
        "escalated": item.escalated,
    }


def arguments_json(arguments: str) -> Any:
    """The arguments as JSON; None when the text is empty or was cut."""
    import json

    try:
        return json.loads(arguments)
    except ValueError:
        return None


def _field(name: str, text: str) -> tuple[Part, ...]:
    return (Ink(f"  {name:<13}", "dim"), text)
