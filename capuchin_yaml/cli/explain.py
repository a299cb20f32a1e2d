"""`capuchin explain`: the page of a diagnostic."""

from __future__ import annotations

import click

from capuchin_yaml.cli import options
from capuchin_yaml.cli.output import ExitCode, Ink
from capuchin_yaml.cli.verb import Verb, output


@click.command(cls=Verb)
@click.argument("id_", metavar="[ID]", default="")
@options.as_json
def command(id_: str, as_json: bool) -> ExitCode:
    """Print the page of a diagnostic.

    ID is what stands in brackets after the word error or warning, such as unknown-key. Without it
    every id is listed.
    """
    from capuchin_yaml.compiler.nearest import nearest
    from capuchin_yaml.compiler.pages import diagnostic_pages

    out = output()
    pages = diagnostic_pages()
    if not id_:
        if as_json:
            out.answer_json([{"v": 1, "id": name, "page": page} for name, page in pages.items()])
            return ExitCode.DONE
        for name, page in pages.items():
            out.answer(Ink(f"{name:<22}", "bold"), page.splitlines()[0])
        return ExitCode.DONE
    name = id_.strip("[]")
    if name not in pages:
        meant = nearest(name, pages)
        hint = f"did you mean {meant!r}?" if meant else "capuchin explain lists them"
        raise click.BadParameter(f"no diagnostic {id_!r}; {hint}", param_hint="'ID'")
    if as_json:
        out.answer_json({"v": 1, "id": name, "page": pages[name]})
    else:
        out.answer(Ink(name, "bold"))
        out.answer("")
        out.answer(pages[name])
    return ExitCode.DONE
