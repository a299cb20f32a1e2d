"""`capuchin init`: a small project that runs at once, with no key."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

import click

from capuchin_yaml.cli.output import ExitCode, json_text
from capuchin_yaml.cli.verb import Verb, output

AGENT = """\
# yaml-language-server: $schema=agent.schema.json
apiVersion: capuchin/v1
name: hello
version: 0.1.0
description: Greets people and answers in one short paragraph.

# Without a key in the environment `capuchin up` rehearses, and says so.
# model: anthropic:claude-opus-4-8

variables:
  house: {type: string, default: the Capuchin house}

prompt: |
  You welcome people at {{ house }}.
  Answer in one short paragraph, and ask one question back.

# Tools come from installed packages, as <entry point>.<tool>; what is not read-only asks first.
# tools:
#   - billing.lookup_order
#   - billing.issue_refund

limits: {max_steps: 8}
price: {type: free}
"""

GITIGNORE = """\
# State of `capuchin up`: the key, the database, logs. Never publish it.
.capuchin/
"""

SCHEMA = "agent.schema.json"
"""What the first line of the agent names; `capuchin schema -o` writes it anew."""


def files() -> Mapping[str, str]:
    """Every file of a new project, with its text."""
    from capuchin_yaml.cli.schema import composed

    schema = json_text(composed()) + "\n"
    return {"agent.yaml": AGENT, SCHEMA: schema, ".gitignore": GITIGNORE}


@click.command(cls=Verb)
@click.argument("folder", metavar="[DIR]", default=".", type=click.Path(path_type=Path))
def command(folder: Path) -> ExitCode:
    """Write a small runnable project.

    DIR is made when it does not exist. No file is ever overwritten: one that is there already
    refuses the whole verb, except a .gitignore or a schema, which is left as it is. The schema
    tells editors what the installed tool packages know.
    """
    out = output()
    agent = folder / "agent.yaml"
    if os.path.lexists(agent):
        out.fail(f"{agent} is there already; nothing was written")
        return ExitCode.REFUSED
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files().items():
            try:
                with (folder / name).open("x", encoding="utf-8", newline="\n") as file:
                    file.write(text)
            except FileExistsError:
                out.tell(f"left {folder / name} as it is")
                continue
            out.answer(f"wrote {folder / name}")
    except OSError as error:
        out.fail(f"cannot write {error.filename or folder}: {error.strerror}")
        return ExitCode.REFUSED
    here = "" if folder == Path() else f"cd {shlex.quote(str(folder))} && "
    out.tell(f"now type: {here}capuchin up")
    return ExitCode.DONE
