"""The program: finds the verb, loads only that one, and ends with its exit code."""

from __future__ import annotations

import importlib
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import NoReturn

import click

from capuchin_yaml import __version__
from capuchin_yaml.cli.output import AnswerLost, ExitCode, Output, exit_code_for
from capuchin_yaml.cli.verb import VerbGroup
from capuchin_yaml.errors import CapuchinError, InvalidAgent

VERBS: Mapping[str, str] = {
    "init": "Write a small runnable project.",
    "validate": "Check agent files and report every mistake.",
    "explain": "Print the page of a diagnostic.",
    "plan": "Say what an agent may do: what runs alone, what asks, what is never done.",
    "policy": "Prove what an agent's policy says of calls, without running any.",
    "render": "Print the exact prompt that a conversation would start with.",
    "up": "Find or start Temporal, run the agents, open the TUI.",
    "down": "Stop what `up --detach` left running.",
    "worker": "Run a worker alone, for a real cluster.",
    "tui": "Open the TUI on the running server.",
    "chat": "Talk with an agent, line by line; works in a pipe.",
    "send": "Send one message and wait for the answer.",
    "list": "List the conversations.",
    "show": "Show one conversation.",
    "inbox": "See and decide what waits for a person.",
    "cancel": "Cancel the running turn of a conversation.",
    "close": "End a conversation for good.",
    "reopen": "Open a closed conversation again.",
    "rename": "Give a conversation a title.",
    "migrate": "Move an open conversation to the agent on disk.",
    "delete": "Delete a closed conversation with all its runs.",
    "pause": "Have an agent begin no new turn.",
    "replay": "Replay histories on the installed code.",
    "convert": "Convert an agent of another format to agent.yaml.",
    "schema": "Write the JSON Schema of agent files for editors.",
    "trust": "Show what agents need beyond themselves, and grant it.",
    "export": "Write the marketplace listing of an agent.",
    "doctor": "Say what is missing on this machine, and what to type.",
}
"""Each verb is a module of this package with the attribute `command`; the text is its short help,
here so that `--help` loads no verb (tests/cli/test_app.py compares them)."""


class Verbs(VerbGroup):
    """A group whose commands are imported when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All verbs, in the order a newcomer meets them."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb, imported now; None when there is none of that name."""
        if cmd_name not in VERBS:
            return None
        command: click.Command = importlib.import_module(f"capuchin_yaml.cli.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb, or say which one was probably meant."""
        if args and not args[0].startswith("-") and args[0] not in VERBS:
            close = get_close_matches(args[0], VERBS, n=1)
            hint = f"did you mean {close[0]!r}?" if close else "capuchin --help lists the verbs"
            raise click.UsageError(f"no verb {args[0]!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the verbs without importing any."""
        with formatter.section("Verbs"):
            formatter.write_dl(list(VERBS.items()))


@click.group(
    cls=Verbs,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 no server or no worker, "
    "4 a person is needed, 130 interrupted.",
)
@click.option(
    "-V",
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=lambda ctx, _param, value: _show_version(ctx, value),
    help="Show the version and exit.",
)
def program() -> None:
    """Agents declared in YAML, run as durable conversations."""


def main() -> NoReturn:
    """Run the verb that the command line names, and end the process with its exit code."""
    out = Output.of_process()
    code = run(sys.argv[1:], out)
    out.flush()
    logging.shutdown()
    if "temporalio" in sys.modules:
        # Why: the SDK's native threads may still log into an interpreter that is shutting down,
        # which aborts the process after the answer was given.
        os._exit(code)
    sys.exit(code)


def run(argv: Sequence[str], out: Output) -> int:
    """Run one verb and return its exit code; messages are printed, never traces."""
    try:
        result = program.main(
            args=list(argv),
            prog_name="capuchin",
            standalone_mode=False,
            obj=out,
        )
        return int(result or 0)
    except click.UsageError as error:
        return _wrong_usage(out, error)
    except click.ClickException as error:
        out.fail(error.format_message())
        return ExitCode.REFUSED
    except (click.Abort, KeyboardInterrupt, EOFError):
        return ExitCode.INTERRUPTED
    except InvalidAgent as error:
        out.tell_rendered(f"{error}\n")
        return ExitCode.REFUSED
    except CapuchinError as error:
        out.fail(str(error))
        return exit_code_for(error)
    except AnswerLost as error:
        out.fail(f"cannot write the answer: {error}")
        return ExitCode.REFUSED
    except (SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # a panic of the SDK is no Exception
        return _unexpected(out, error)


def _wrong_usage(out: Output, error: click.UsageError) -> int:
    context = error.ctx
    if isinstance(error, click.exceptions.NoArgsIsHelpError) and context is not None:
        out.tell(context.get_help())
        return ExitCode.USAGE
    if context is not None:
        out.tell(context.get_usage())
    # Click lays out a choice in lines that begin with a tab.
    out.fail(" ".join(error.format_message().split()))
    if context is not None and context.command.get_help_option(context) is not None:
        out.tell(f"type {context.command_path} --help")
    return ExitCode.USAGE


def _show_version(ctx: click.Context, value: bool) -> None:
    if value:
        ctx.ensure_object(Output).answer(f"capuchin {__version__}")
        ctx.exit()


def _unexpected(out: Output, error: BaseException) -> int:
    logging.getLogger(__name__).error("unexpected error", exc_info=error)
    if isinstance(error, OSError):
        out.fail(str(error))
    else:
        out.fail(f"internal error: {type(error).__name__}: {error}; -v shows where")
    return ExitCode.REFUSED


if __name__ == "__main__":
    main()
