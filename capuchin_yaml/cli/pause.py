"""`capuchin pause`: no new turns of an agent, before a deploy."""

from __future__ import annotations

import click

from capuchin_yaml.cli import options
from capuchin_yaml.cli.agents_file import agent_named, no_such_name, read_agents
from capuchin_yaml.cli.output import ExitCode, Output
from capuchin_yaml.cli.reached import reached
from capuchin_yaml.cli.verb import Verb, output, run_async


@click.command(cls=Verb)
@click.argument("agent", metavar="AGENT")
@click.option("--resume", is_flag=True, help="Let it take up turns again.")
@click.option("--reason", default="", metavar="TEXT", help="Why; shown with every held turn.")
@options.as_json
def command(agent: str, resume: bool, reason: str, as_json: bool) -> ExitCode:
    """Have an agent begin no new turn.

    Messages are accepted and wait; turns that began go on. The pause holds for every worker and
    outlives restarts, until `--resume`. Ends with 1 when there was no pause to resume from.
    """
    return run_async(_pause(output(), agent, resume, reason, as_json))


async def _pause(out: Output, agent: str, resume: bool, reason: str, as_json: bool) -> ExitCode:
    from capuchin_yaml.client.identity import asserted_user

    by = asserted_user()
    async with reached() as (home, fleet):
        if resume:
            pause = await fleet.resume(agent)
        else:
            agents = read_agents(home)
            if agents and agent_named(agents, agent) is None:
                raise no_such_name(agents, agent)
            pause = await fleet.pause(agent, by=by, reason=reason)
    if as_json:
        told = {"by": pause.by, "at": pause.at, "reason": pause.reason} if pause else None
        is_paused = not resume
        out.answer_json({"v": 1, "agent": agent, "paused": is_paused, "pause": told})
    elif pause is not None:
        why = f": {pause.reason}" if pause.reason else ""
        done = "resumed" if resume else "paused"
        out.answer(f"{done} {agent} (paused by {pause.by} at {pause.at}{why})")
    if pause is None:
        out.fail(f"{agent} was not paused")
        return ExitCode.REFUSED
    return ExitCode.DONE
