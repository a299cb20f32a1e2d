"""Options that several verbs share, spelled and explained once."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def words(typed: str) -> str:
    """What a person says: UTF-8 in every locale, also in one that knows ASCII only.

    For arguments that are said to an agent or kept; paths stay as the system has them.
    """
    if any("\udc80" <= char <= "\udcff" for char in typed):
        with contextlib.suppress(UnicodeError):
            return os.fsencode(typed).decode()
    return typed


as_json = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document instead of text."
)
reason = click.option(
    "--reason", type=words, default="", metavar="TEXT", help="Why; the agent reads it."
)
profile = click.option(
    "--profile",
    metavar="NAME",
    help="Take the agents with this profile, where they have it.",
)
paths = click.argument("paths", nargs=-1, type=click.Path(path_type=Path))


def limit(default: int) -> Callable[[F], F]:
    """`--limit`: the most rows that are read and shown."""
    return click.option(
        "--limit",
        type=click.IntRange(1, 10_000),
        default=default,
        show_default=True,
        metavar="N",
        help="Most rows shown.",
    )


def start_values(command: F) -> F:
    """`--var` and `--set`: what a new conversation starts with."""
    command = click.option(
        "--set",
        "injected",
        type=words,
        multiple=True,
        metavar="NAME=VALUE",
        callback=pairs,
        help="A value that tools see and the model never does.",
    )(command)
    return click.option(
        "--var",
        "variables",
        type=words,
        multiple=True,
        metavar="NAME=VALUE",
        callback=pairs,
        help="A variable of the agent's prompt.",
    )(command)


def pairs(_ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> dict[str, str]:
    """The values of an option that is given as NAME=VALUE, each name once."""
    found: dict[str, str] = {}
    for value in values:
        name, equals, text = value.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{value!r} is not NAME=VALUE", param=param)
        if name in found:
            raise click.BadParameter(f"{name!r} is given twice", param=param)
        found[name] = text
    return found
