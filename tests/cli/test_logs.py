"""Logs are kept for a while and then let go."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from capuchin_yaml.cli.logs import KEPT_DAYS, drop_old_worker_logs


@pytest.fixture
def ended() -> int:
    """The number of a process that is no more."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_only_old_logs_of_workers_that_have_ended_are_removed(tmp_path: Path, ended: int) -> None:
    old = time.time() - (KEPT_DAYS + 1) * 86_400
    names = {
        f"worker-{ended}.log": old,
        f"worker-{ended}.log.1": old,
        f"worker-{ended}.log.2": time.time(),
        f"worker-{os.getpid()}.log": old,
        "worker-output.log": old,
        "worker.log": old,
        "up.log": old,
    }
    for name, at in names.items():
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (at, at))

    drop_old_worker_logs(tmp_path)
    drop_old_worker_logs(tmp_path / "nowhere")

    left = {path.name for path in tmp_path.iterdir()}
    assert left == set(names) - {f"worker-{ended}.log", f"worker-{ended}.log.1"}
