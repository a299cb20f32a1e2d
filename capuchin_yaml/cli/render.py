"""`capuchin render`: the exact prompt that a conversation would start with."""

from __future__ import annotations

from pathlib import Path

import click

from capuchin_yaml.cli import options
from capuchin_yaml.cli.output import ExitCode
from capuchin_yaml.cli.verb import Verb, output
from capuchin_yaml.spec import AgentSpec, JsonValue


@click.command(cls=Verb)
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "--var",
    "variables",
    type=options.words,
    multiple=True,
    metavar="NAME=VALUE",
    callback=options.pairs,
    help="A variable of the agent's prompt.",
)
@options.profile
@options.as_json
def command(
    path: Path, variables: dict[str, JsonValue], profile: str | None, as_json: bool
) -> ExitCode:
    """Print the exact prompt that a conversation would start with.

    With --json also what else the model is told: its tools, with their schemas. Values from the
    environment are never part of either.
    """
    from capuchin_yaml.cli.agents_on_disk import compile_agent, shown_problems
    from capuchin_yaml.compiler.given import check_variables
    from capuchin_yaml.compiler.template import render_prompt

    out = output()
    compiled = compile_agent(path, profile)
    spec = compiled.spec
    if spec is None:
        out.tell_rendered(shown_problems(compiled))
        return ExitCode.REFUSED
    prompt = render_prompt(spec.prompt, check_variables(spec, variables))
    if as_json:
        out.answer_json(_json(spec, prompt))
    else:
        out.answer(prompt.removesuffix("\n"))
    return ExitCode.DONE


def _json(spec: AgentSpec, prompt: str) -> dict[str, JsonValue]:
    return {
        "v": 1,
        "agent": spec.name,
        "version": spec.version,
        "definition_hash": spec.definition_hash,
        "model": spec.model,
        "prompt": prompt,
        "tools": [
            {
                "v": 1,
                "name": tool.alias,
                "tool": tool.identity,
                "description": tool.description,
                "input_schema": dict(tool.input_schema),
            }
            for tool in spec.tools
        ],
    }
