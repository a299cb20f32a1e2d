"""`capuchin list`: the conversations of this project."""

from __future__ import annotations

import click

from capuchin_yaml.cli import options
from capuchin_yaml.cli.clock import distance
from capuchin_yaml.cli.output import ExitCode, Ink, Output
from capuchin_yaml.cli.reached import reached
from capuchin_yaml.cli.verb import Verb, output, run_async
from capuchin_yaml.events import ConversationStatus
from capuchin_yaml.terminal_text import one_line

STATUSES: tuple[ConversationStatus, ...] = (
    "idle",
    "thinking",
    "waiting",
    "blocked",
    "closed",
    "failed",
)


@click.command(cls=Verb)
@click.option("--agent", metavar="NAME", help="Only conversations with this agent.")
@click.option("--status", type=click.Choice(STATUSES), help="Only conversations in this status.")
@options.limit(50)
@options.as_json
def command(
    agent: str | None, status: ConversationStatus | None, limit: int, as_json: bool
) -> ExitCode:
    """List the conversations."""
    return run_async(_list(output(), agent, status, limit, as_json))


async def _list(
    out: Output, agent: str | None, status: ConversationStatus | None, limit: int, as_json: bool
) -> ExitCode:
    async with reached() as (_home, fleet):
        rows = await fleet.list(limit=limit, agent=agent, status=status)
    if as_json:
        out.answer_json(
            [
                {
                    "v": 1,
                    "conversation": row.id,
                    "agent": row.agent,
                    "status": row.status,
                    "waiting": row.waiting,
                    "title": row.title,
                    "updated_at": row.updated_at,
                }
                for row in rows
            ]
        )
        return ExitCode.DONE
    width = max((len(row.id) for row in rows), default=0)
    for row in rows:
        status_text = f"{row.status} {row.waiting}" if row.waiting else row.status
        out.answer(
            Ink(f"{row.id:<{width}}", "bold"),
            "  ",
            Ink(f"{status_text:<10}", "yellow" if row.waiting else "dim"),
            f"  {distance(row.updated_at):<8}  ",
            one_line(row.title, 72),
        )
        if out.reader_gone:
            break
    if not rows:
        out.tell("no conversations yet; type: capuchin chat")
    elif len(rows) == limit:
        out.tell(f"the newest {limit}; --limit shows more")
    return ExitCode.DONE
