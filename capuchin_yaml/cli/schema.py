"""`capuchin schema`: the JSON Schema for editors, with the installed tool packages."""

from __future__ import annotations

from pathlib import Path

import click

from capuchin_yaml.cli.export import write_beside
from capuchin_yaml.cli.output import ExitCode, json_text
from capuchin_yaml.cli.verb import Verb, output


@click.command(cls=Verb)
@click.option(
    "-o",
    "--output",
    "target",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write there instead of to stdout.",
)
@click.option("--json", "as_json", is_flag=True, help="The schema is JSON anyway.")
def command(target: Path | None, as_json: bool) -> ExitCode:
    """Write the JSON Schema of agent files for editors.

    It knows the tools, their config and their arguments of every package that is installed here.
    An agent file names it in its first line: # yaml-language-server: $schema=agent.schema.json
    """
    del as_json
    out = output()
    if target is None:
        out.answer_json(composed())
        return ExitCode.DONE
    return write_beside(out, target, json_text(composed()) + "\n")


def composed() -> dict[str, object]:
    """The schema with the packages of this environment."""
    from capuchin_yaml.compiler.editor_schema import editor_schema
    from capuchin_yaml.tools.registry import Registry

    return editor_schema(Registry.installed())
