"""What the verbs of `capuchin inbox` that are about one item have in common."""

from __future__ import annotations

import click

from capuchin_yaml.cli.item_text import MIN_DIGEST


def _checked(_ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value is None:
        return None
    text = value.strip().lower()
    if len(text) < MIN_DIGEST or any(c not in "0123456789abcdef" for c in text):
        raise click.BadParameter(
            f"{value!r} is not {MIN_DIGEST} or more hexadecimal digits as `inbox show` prints",
            param=param,
        )
    return text


digest = click.option(
    "--digest",
    metavar="D",
    callback=_checked,
    help=f"The first {MIN_DIGEST} or more characters of the digest that `show` prints.",
)
item = click.argument("item", metavar="ID")
