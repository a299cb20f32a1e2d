"""`capuchin up`: server, worker and a place to talk, in one process tree."""

from __future__ import annotations

from pathlib import Path

import click

from capuchin_yaml.cli import options
from capuchin_yaml.cli.agents_on_disk import usual_paths
from capuchin_yaml.cli.durations import DURATION
from capuchin_yaml.cli.output import ExitCode, Output
from capuchin_yaml.cli.reached import home_of, start_logs_in
from capuchin_yaml.cli.supervise import Plan
from capuchin_yaml.cli.verb import Verb, output, run_async

GRACE_S = 10.0


@click.command(cls=Verb)
@options.paths
@options.profile
@click.option("--no-tui", is_flag=True, help="Log instead of opening the TUI.")
@click.option("--detach", is_flag=True, help="Leave all running, for `capuchin down`.")
@click.option(
    "--temporal-ui",
    is_flag=True,
    help="Open Temporal's own Web UI too: whoever reaches its port can change conversations.",
)
@click.option("--fast", is_flag=True, help="Quicker writes; a power cut may lose the last moments.")
@click.option(
    "--grace",
    "grace_s",
    type=DURATION,
    default=f"{GRACE_S:g}s",
    show_default=True,
    metavar="TIME",
    help="How long running calls may take when everything is stopped.",
)
@click.option("--report-fd", type=int, hidden=True)
def command(
    paths: tuple[Path, ...],
    profile: str | None,
    no_tui: bool,
    detach: bool,
    temporal_ui: bool,
    fast: bool,
    grace_s: float,
    report_fd: int | None,
) -> ExitCode:
    """Find or start Temporal, run the agents, open the TUI.

    PATHS are agent files and folders of them; without any ./agent.yaml is meant, else every agent
    in ./agents/. Changed files are taken up while it runs. Without a terminal it logs.
    """
    out = output()
    plan = make_plan(paths, profile=profile, temporal_ui=temporal_ui, is_fast=fast, grace_s=grace_s)
    if report_fd is None and out.talks_with_person:
        _ask_for_grants(out, plan)
    if detach:
        from capuchin_yaml.cli.detach import start_detached

        return start_detached(out, plan, paths)
    if report_fd is None and not no_tui:
        from capuchin_yaml.cli.tui import has_terminal

        if has_terminal():
            from capuchin_yaml.cli.terminal_app import up_with_tui

            return up_with_tui(out, plan)
    from capuchin_yaml.cli.up_log import up_with_log

    return run_async(up_with_log(out, plan, report_fd))


def _ask_for_grants(out: Output, plan: Plan) -> None:
    """Ask once for what the agents need; an agent without its grant does not start."""
    from capuchin_yaml.cli.trust import ask_for_grants
    from capuchin_yaml.compiler.file_needs import file_needs
    from capuchin_yaml.compiler.load import find_agents
    from capuchin_yaml.compiler.operator_config import read_operator_config

    grants = read_operator_config().grants
    files = [file_needs(path, plan.profile) for path in find_agents(plan.find)]
    ungranted = [one for one in files if not one.is_granted(grants)]
    if ungranted:
        ask_for_grants(out, ungranted, out.tell)


def make_plan(
    paths: tuple[Path, ...],
    *,
    temporal_ui: bool,
    is_fast: bool,
    grace_s: float,
    profile: str | None = None,
) -> Plan:
    """What to run, and where its state is.

    Raises:
        click.UsageError: no path is given and none of the usual ones is there.
        UnsafeState: the state folder is not ours alone.
    """
    find = paths or usual_paths()
    if not find:
        raise click.UsageError(
            "no agent.yaml and no agents/ here; name a file or folder, or type: capuchin init"
        )
    home = home_of(find).open()
    start_logs_in(home, "up.log")
    return Plan(
        home=home,
        # Relative names stay short in messages; the worker process has the same current folder.
        find=find,
        profile=profile,
        temporal_ui=temporal_ui,
        is_fast=is_fast,
        grace_s=grace_s,
    )


def tell_elsewhere(out: Output, plan: Plan) -> None:
    """Say how other terminals find this project, when the current folder does not show it."""
    from capuchin_yaml.client.home import Home
    from capuchin_yaml.client.private_files import quoted

    if Home.find().path != plan.home.path:
        out.tell(f"in other terminals first: export CAPUCHIN_HOME={quoted(plan.home.path)}")
