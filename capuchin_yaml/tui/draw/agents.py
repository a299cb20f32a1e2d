"""Agents as rows: what they are, what they ask about, what is wrong with their file."""

from __future__ import annotations

from capuchin_yaml.terminal_text import one_line, visible
from capuchin_yaml.tui.draw.rows import Piece, Row, clip, row, spread, wrap
from capuchin_yaml.tui.gateway import AgentCard
from capuchin_yaml.tui.model.fleet import Fleet

_LABEL = 11


def agent_line(card: AgentCard, width: int) -> list[Row]:
    """An agent as two rows of the list."""
    if not card.is_served:
        state = Piece("✖ not served", "bad")
    elif card.problem:
        state = Piece("▲ file has errors", "warn")
    else:
        state = Piece("✔ served", "ok")
    name = Piece(one_line(card.name, 60), "strong")
    head = spread((name, Piece(f" {one_line(card.version, 20)}", "muted")), (state,), width)
    note = card.problem or card.description or card.policy
    return [head, clip((Piece(f"  {one_line(note, 300)}", "muted"),), width)]


def agent_rows(card: AgentCard, fleet: Fleet, width: int) -> list[Row]:
    """Everything that is known of an agent."""
    out: list[Row] = [
        (Piece(one_line(card.name, 60), "agent"), Piece(f" {one_line(card.version, 20)}", "muted"))
    ]
    if card.description:
        out += wrap((Piece(visible(card.description)),), width)
    out.append(())
    if card.problem:
        out += _fact("file", card.problem, width, "bad")
        kept = "the last good version is served" if card.is_served else "it is not served"
        out += _fact("", kept, width, "muted")
    out += _fact("policy", card.policy or "unknown", width)
    out += _fact("model", card.model or "unknown", width)
    worker = worker_state(fleet)
    out += _fact("worker", worker[0], width, worker[1])
    statuses = [fleet.status(r) for r in fleet.rows.values() if r.agent == card.name]
    waits = statuses.count("waiting")
    talks = f"{len(statuses)} listed" + (f", {waits} need a person" if waits else "")
    out += _fact("talks", talks, width)
    if card.variables:
        out += [(), row("variables", "strong")]
    for name, spec in card.variables.items():
        default = "required" if spec.required else f"default {spec.default!r}"
        out += _fact("", f"{name} ({spec.type}, {default}) {spec.description}".rstrip(), width)
    if card.injected:
        out += [(), row("injected (tools see it, the model does not)", "strong")]
        out += _fact("", ", ".join(card.injected), width)
    return out


def worker_state(fleet: Fleet) -> tuple[str, str]:
    """How it stands with the workers, in words, with a role."""
    link = fleet.link
    if link.state == "starting":
        return "still starting", "muted"
    if not link.is_up:
        return "unknown: the server is away", "bad"
    if not fleet.has_worker:
        return "none: messages wait; `capuchin up` or `capuchin worker` starts one", "warn"
    if link.workers is None:
        return "the server does not say", "muted"
    return f"{link.workers} {'listens' if link.workers == 1 else 'listen'}", "ok"


def _fact(label: str, value: str, width: int, role: str = "text") -> list[Row]:
    lead = Piece(f"{label:<{_LABEL}}", "muted")
    text = Piece(visible(value, keep_newlines=False), role)
    return wrap((text,), width, (lead,), (Piece(" " * _LABEL),))
