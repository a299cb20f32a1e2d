"""`capuchin export`: the marketplace listing of an agent."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import click

from capuchin_yaml.cli import options
from capuchin_yaml.cli.output import ExitCode, Output
from capuchin_yaml.cli.verb import Verb, output


@click.command(cls=Verb)
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    "target",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write there instead of to stdout.",
)
@options.profile
@click.option("--json", "as_json", is_flag=True, help="The listing is JSON anyway.")
def command(path: Path, target: Path | None, profile: str | None, as_json: bool) -> ExitCode:
    """Write the marketplace listing of an agent.

    It holds identity, price, needs and risk, and never the prompt, tool config, addresses,
    defaults of variables or paths of this machine.
    """
    del as_json
    from capuchin_yaml.cli.agents_on_disk import compile_agent, shown_problems

    out = output()
    compiled = compile_agent(path, profile)
    if compiled.spec is None:
        out.tell_rendered(shown_problems(compiled))
        return ExitCode.REFUSED
    from capuchin_yaml.market.listing import listing, listing_text

    if target is None:
        out.answer_json(listing(compiled.spec))
        return ExitCode.DONE
    return write_beside(out, target, listing_text(compiled.spec))


def write_beside(out: Output, target: Path, text: str) -> ExitCode:
    """Put text into a file whole or not at all, and say so."""
    try:
        # Why beside it first: a full disk must not leave half a listing in its place.
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=target.parent, prefix=f".{target.name}.", delete=False
        ) as file:
            file.write(text)
        os.chmod(file.name, 0o644)
        os.replace(file.name, target)
    except OSError as error:
        out.fail(f"cannot write {target}: {error.strerror}")
        return ExitCode.REFUSED
    out.tell(f"wrote {target}")
    return ExitCode.DONE
