"""`capuchin replay`: prove the installed code against histories, before a deploy."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from capuchin_yaml.cli import options
from capuchin_yaml.cli.output import ExitCode, Output
from capuchin_yaml.cli.reached import found_home, reach
from capuchin_yaml.cli.verb import Verb, output, run_async
from capuchin_yaml.errors import RequestRefused

if TYPE_CHECKING:
    from temporalio.client import WorkflowHistory
    from temporalio.converter import DataConverter

    from capuchin_yaml.client.fleet import Capuchin
    from capuchin_yaml.client.home import Home


@click.command(cls=Verb)
@click.argument("what", nargs=-1, metavar="[PATH|ID]...")
@click.option(
    "--save",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Also write each live history to a file in DIR, for replays elsewhere.",
)
@options.as_json
def command(what: tuple[str, ...], folder: Path | None, as_json: bool) -> ExitCode:
    """Replay histories on the installed code.

    PATH is a saved history or a folder of them; ID is a conversation on the server, with all its
    runs. Without either, every open conversation of the project. Nothing is changed or sent. Ends
    with 1 when a conversation could not go on, naming it; the first named is the first found.
    """
    paths = [Path(word) for word in what if Path(word).exists()]
    words = [word for word in what if not Path(word).exists()]
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    return run_async(_replay(output(), paths, words, folder, as_json))


async def _replay(
    out: Output, paths: Sequence[Path], words: Sequence[str], folder: Path | None, as_json: bool
) -> ExitCode:
    from capuchin_yaml.client.connection import sdk_runtime
    from capuchin_yaml.engine.replay import Replayed, replay_histories

    home = found_home()
    done: list[Replayed] = []

    def tell(replayed: Replayed) -> None:
        done.append(replayed)
        if replayed.problem:
            where = f"{replayed.conversation} (run {replayed.run_id or 'unknown'})"
            out.fail(f"{where} does not replay: {replayed.problem}")

    if paths:
        saved = replay_histories(_saved(paths), _converter(home), runtime=sdk_runtime())
        async for replayed in saved:
            tell(replayed)
    if words or not paths:
        async with await reach(home, program="cli") as fleet:
            live = _live(fleet, words, folder)
            converter = fleet.temporal.data_converter
            async for replayed in replay_histories(live, converter, runtime=sdk_runtime()):
                tell(replayed)
    bad = [r for r in done if r.problem]
    if as_json:
        named = [
            {"conversation": r.conversation, "run_id": r.run_id, "problem": r.problem} for r in bad
        ]
        out.answer_json({"v": 1, "replayed": len(done), "bad": named})
    else:
        conversations = len({r.conversation for r in done})
        out.answer(
            f"{len(done) - len(bad)} of {len(done)} histories of {conversations} conversations"
            " go on with the installed code"
        )
    return ExitCode.REFUSED if bad else ExitCode.DONE


def _converter(home: Home) -> DataConverter:
    from capuchin_yaml.client.project_store import project_store
    from capuchin_yaml.client.target import Target
    from capuchin_yaml.engine.sealing import sealed_converter

    # A saved history may be of any server; what it refers to is looked for where this one keeps it.
    return sealed_converter(home.key(), project_store(home, Target(address="")))


async def _saved(paths: Sequence[Path]) -> AsyncIterator[WorkflowHistory]:
    """Read histories in Temporal's own JSON, as `--save` and the Temporal CLI write them.

    Raises:
        RequestRefused: a file is no history.
    """
    from temporalio.client import WorkflowHistory

    files = [f for p in paths for f in (sorted(p.glob("*.json")) if p.is_dir() else [p])]
    if not files:
        raise RequestRefused(f"no *.json in {', '.join(str(p) for p in paths)}")
    for file in files:
        try:
            value = json.loads(file.read_text())
            started = value["events"][0]["workflowExecutionStartedEventAttributes"]
            history = WorkflowHistory.from_json(str(started.get("workflowId") or file.stem), value)
        except (OSError, ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
            raise RequestRefused(f"{file} is no saved history: {error!r}") from error
        yield history


async def _live(
    fleet: Capuchin, words: Sequence[str], folder: Path | None
) -> AsyncIterator[WorkflowHistory]:
    named = [(await fleet.find(word)).id for word in words] if words else None
    async for history in fleet.histories(named):
        if folder is not None:
            name = f"{history.workflow_id}.{history.run_id}.json"
            (folder / name).write_text(history.to_json() + "\n")
        yield history
