"""Writes docs/reference/cli.md from the program itself: `python -m tests.cli.reference`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import click

from capuchin_yaml.cli.app import program
from capuchin_yaml.cli.output import ExitCode

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"

HEAD = Path(__file__).with_name("reference_head.md")
"""What stands before the verbs."""

MEANINGS = {
    ExitCode.DONE: "done",
    ExitCode.REFUSED: "the file, the request or the run was refused, or it failed",
    ExitCode.USAGE: "wrong usage; nothing was done",
    ExitCode.NO_SERVER: "no server, or no worker",
    ExitCode.PERSON_NEEDED: "an item waits for a person; stderr says which and what to type",
    ExitCode.INTERRUPTED: "interrupted by Ctrl-C",
}


def reference_text() -> str:
    """The whole page."""
    codes = "".join(f"| {code.value} | `{code.name}` | {MEANINGS[code]} |\n" for code in ExitCode)
    head = HEAD.read_text(encoding="utf-8").replace("{exit_codes}", codes)
    return "".join([head, *_sections(program, "capuchin")])


def _sections(command: click.Command, path: str) -> Iterator[str]:
    if command is not program:
        yield f"\n## {path}\n\n{_usage(command, path)}{_text(command.help or '')}\n"
        yield _options(command)
    if isinstance(command, click.Group):
        with click.Context(command) as context:
            for name in command.list_commands(context):
                child = command.get_command(context, name)
                assert child is not None
                yield from _sections(child, f"{path} {name}")


def _usage(command: click.Command, path: str) -> str:
    if isinstance(command, click.Group):
        return ""
    words = [path, "[OPTIONS]"]
    for param in command.params:
        if isinstance(param, click.Argument):
            name = param.metavar or (param.name or "").upper()
            many = "..." if param.nargs == -1 else ""
            words.append(f"{name}{many}" if param.required else f"[{name.strip('[]')}{many}]")
    return f"```text\n{' '.join(words)}\n```\n\n"


def _text(help_: str) -> str:
    """The help with one sentence a line, as all pages have it."""
    paragraphs = [" ".join(part.split()) for part in inspect.cleandoc(help_).split("\n\n")]
    return "\n\n".join(re.sub(r"(?<=[.;]) (?=[A-Z])", "\n", text) for text in paragraphs)


def _options(command: click.Command) -> str:
    rows = []
    for param in command.params:
        if isinstance(param, click.Option) and not param.hidden:
            value = "" if param.is_flag else f" {param.metavar or _choices(param)}"
            names = ", ".join(f"`{name}{value}`" for name in param.opts)
            default = f" Default: `{param.default}`." if param.show_default else ""
            rows.append(f"| {names.replace('|', chr(92) + '|')} | {param.help}{default} |\n")
    return "".join(["\n| option | meaning |\n|---|---|\n", *rows]) if rows else ""


def _choices(option: click.Option) -> str:
    if isinstance(option.type, click.Choice):
        return "|".join(str(choice) for choice in option.type.choices)
    return option.type.name.upper()


if __name__ == "__main__":
    REFERENCE.parent.mkdir(parents=True, exist_ok=True)
    REFERENCE.write_text(reference_text(), encoding="utf-8")
