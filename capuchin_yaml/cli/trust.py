"""`capuchin trust`: what agents need beyond themselves, and the operator's yes to it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from capuchin_yaml.cli import options
from capuchin_yaml.cli.agents_on_disk import usual_paths
from capuchin_yaml.cli.output import ExitCode, Ink, Output
from capuchin_yaml.cli.verb import Verb, output

if TYPE_CHECKING:
    from capuchin_yaml.compiler.file_needs import FileNeeds
    from capuchin_yaml.policy.needs import Grant
    from capuchin_yaml.spec import JsonValue


@click.command(cls=Verb)
@options.paths
@click.option("--yes", is_flag=True, help="Grant without asking.")
@options.profile
@options.as_json
def command(paths: tuple[Path, ...], yes: bool, profile: str | None, as_json: bool) -> ExitCode:
    """Show what agents need beyond themselves, and grant it.

    A need is a variable of the environment that a tool or the model is to get, or an address that
    the model is asked at. Grants are kept in the
    operator's config of this machine, for exactly these needs: a file that wants more, or
    something else, is asked about again.
    """
    from capuchin_yaml.compiler.file_needs import file_needs
    from capuchin_yaml.compiler.load import find_agents
    from capuchin_yaml.compiler.operator_config import read_operator_config

    out = output()
    find = paths or usual_paths()
    if not find:
        raise click.UsageError("no agent.yaml and no agents/ here; name a file or a folder")
    files = [file_needs(path, profile) for path in find_agents(find)]
    if as_json:
        grants = read_operator_config().grants
        out.answer_json([_json(one, grants) for one in files])
        return ExitCode.DONE
    return ExitCode.DONE if ask_for_grants(out, files, out.answer, yes=yes) else ExitCode.REFUSED


def ask_for_grants(
    out: Output, files: Sequence[FileNeeds], say: Callable[..., None], *, yes: bool = False
) -> bool:
    """Show every need that is not granted and ask once; True when nothing is left ungranted.

    What is needed is said through `say`, the question is asked on stderr.

    Raises:
        UnsafeState: the operator's config cannot be written.
    """
    from capuchin_yaml.compiler.operator_config import read_operator_config
    from capuchin_yaml.compiler.operator_grants import add_grants
    from capuchin_yaml.policy.needs import grant_of

    config = read_operator_config()
    open_ = [one for one in files if not one.is_granted(config.grants)]
    for one in files:
        if one.needs and one not in open_:
            say(f"{one.agent} ({one.path}): all that it needs is granted")
    if not open_:
        if not any(one.needs for one in files):
            out.tell("nothing is needed beyond the agents themselves")
        return True
    for one in open_:
        say(Ink(one.agent, "bold"), f" ({one.path}) needs")
        for need in one.needs:
            say(f"  {need}")
    if not yes:
        if not out.talks_with_person:
            out.fail("nobody is here to ask; to grant it: capuchin trust --yes PATH")
            return False
        out.ask("grant this on this machine? [y/N] ")
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            out.tell("nothing was granted")
            return False
    add_grants(config, [grant_of(one.agent, one.needs) for one in open_])
    out.tell(f"granted, in {config.path}")
    return True


def _json(one: FileNeeds, grants: tuple[Grant, ...]) -> dict[str, JsonValue]:
    return {
        "v": 1,
        "path": str(one.path),
        "agent": one.agent,
        "needs": [
            {"v": 1, "variable": n.variable or None, "tool": n.tool, "address": n.address or None}
            for n in one.needs
        ],
        "granted": one.is_granted(grants),
    }
