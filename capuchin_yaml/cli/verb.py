"""What every verb has: help and version through the output, `-v`, and one way to run async work."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

import click

from capuchin_yaml.cli.output import Output

T = TypeVar("T")
READER_S = 0.5
"""Pause between two looks at whether a streamed answer still has a reader."""
_VERBOSE = "capuchin_yaml.verbose"


class _HelpThroughOutput(click.Command):
    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """The help option, printing like every other answer."""
        option = super().get_help_option(ctx)
        if option is not None:
            option.callback = _show_help
        return option


class Verb(_HelpThroughOutput):
    """One verb; takes `-v` besides its own options."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.append(
            click.Option(
                ["-v", "--verbose"],
                is_flag=True,
                expose_value=False,
                callback=_set_verbose,
                help="Show logs on stderr.",
            )
        )

    def invoke(self, ctx: click.Context) -> Any:
        """Run the verb with its logs in place."""
        from capuchin_yaml.cli.logs import start_logs

        start_logs(verbose=is_verbose(ctx))
        return super().invoke(ctx)


class VerbGroup(_HelpThroughOutput, click.Group):
    """Verbs under one word, such as `inbox approve`."""

    command_class = Verb


def output() -> Output:
    """The output of the running verb."""
    found = click.get_current_context().find_object(Output)
    assert found is not None, "a verb runs inside the program, which made its output"
    return found


def is_verbose(ctx: click.Context | None = None) -> bool:
    """Whether `-v` was given."""
    return bool((ctx or click.get_current_context()).meta.get(_VERBOSE, False))


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Run async work to its end; Ctrl-C cancels it and is passed on as KeyboardInterrupt."""
    import asyncio

    return asyncio.run(work)


async def while_read(out: Output, work: Coroutine[Any, Any, T]) -> T | None:
    """Do work that streams its answer; None as soon as nobody reads it any more."""
    import asyncio

    async def reader_left() -> None:
        while True:
            if out.notices_reader_gone():
                return
            await asyncio.sleep(READER_S)

    working, left = asyncio.create_task(work), asyncio.create_task(reader_left())
    try:
        await asyncio.wait({working, left}, return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        for task in (working, left):
            task.cancel()
        await asyncio.gather(working, left, return_exceptions=True)


def _set_verbose(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value:
        ctx.meta[_VERBOSE] = True


def _show_help(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        found = ctx.find_object(Output)
        if found is not None:
            found.answer(ctx.get_help())
        ctx.exit()
