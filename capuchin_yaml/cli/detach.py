"""`up --detach`: a background `up` that lets go of the terminal once all runs; and its end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from capuchin_yaml.cli.output import ExitCode, Output
from capuchin_yaml.cli.supervise import Plan
from capuchin_yaml.cli.up import tell_elsewhere
from capuchin_yaml.cli.up_lock import UpLock


def start_detached(out: Output, plan: Plan, paths: Sequence[Path]) -> ExitCode:
    """Start `up` in a session of its own and return once it is ready, or with its exit code."""
    if plan.home.exists:
        # Why here too: the refusal should not wait for a second process.
        UpLock.take(plan.home).close()
    report_in, report_out = os.pipe()
    command = [sys.executable, "-P", "-m", "capuchin_yaml.cli.app", "up", "--no-tui"]
    command += ["--report-fd", str(report_out), "--grace", f"{plan.grace_s:g}s"]
    command += ["--temporal-ui"] * plan.temporal_ui + ["--fast"] * plan.is_fast
    command += ["--profile", plan.profile] if plan.profile is not None else []
    child = subprocess.Popen(
        [*command, "--", *(str(path) for path in paths)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        pass_fds=(report_out,),
        start_new_session=True,
    )
    os.close(report_out)
    try:
        with os.fdopen(report_in, "rb") as report:
            is_ready = report.readline() == b"ready\n"
        if not is_ready:
            return _as_exit_code(child.wait())
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            child.send_signal(signal.SIGTERM)
        child.wait()
        raise
    out.tell(f"it goes on in the background (process {child.pid}); stop it with: capuchin down")
    tell_elsewhere(out, plan)
    return ExitCode.DONE


def _as_exit_code(code: int) -> ExitCode:
    try:
        return ExitCode(code) if code else ExitCode.REFUSED
    except ValueError:
        return ExitCode.REFUSED
