"""What is written past Python reaches the log of a worker without secrets."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

PROGRAM = """
import os, subprocess, sys
from pathlib import Path
from capuchin_yaml.engine.scrub import Scrubber
from capuchin_yaml.engine.scrub_output import ScrubbedLog

folder = Path(sys.argv[1])
flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
output = ScrubbedLog(os.open(folder / "log", flags, 0o600), folder)
scrubber = Scrubber()
scrubber.add("TOKEN", "s3cret-value-of-the-token")
os.write(2, b"early s3cret-value-of-the-token\\n")
output.scrub_with(scrubber)
{then}
output.drain()
os._exit(0)
"""
SAY = "print('child', 's3cret-value-of-the-token', '\\u00e9' * 3, flush=True)"


def log_after(folder: Path, then: str) -> str:
    program = PROGRAM.replace("{then}", then)
    subprocess.run([sys.executable, "-c", program, str(folder)], check=True, timeout=60)
    return (folder / "log").read_text(encoding="utf-8")


def test_a_program_and_a_raw_write_are_scrubbed(tmp_path: Path) -> None:
    said = log_after(
        tmp_path,
        f"subprocess.run([sys.executable, '-X', 'utf8', '-c', {SAY!r}], check=True)\n"
        "os.write(1, b'half s3cret-value')\n"
        "os.write(1, b'-of-the-token whole')",
    )

    assert said == ("early [secret TOKEN]\nchild [secret TOKEN] ééé\nhalf [secret TOKEN] whole")


def test_nothing_that_was_written_before_the_end_is_lost(tmp_path: Path) -> None:
    said = log_after(tmp_path, "for i in range(200_000): os.write(1, b'%d\\n' % i)")

    assert said.splitlines() == ["early [secret TOKEN]", *map(str, range(200_000))]


def test_who_writes_waits_for_nobody_and_what_is_written_shows_soon(tmp_path: Path) -> None:
    log = tmp_path / "log"
    waits = (
        "os.write(1, b'x' * 5_000_000 + b' done')\n"
        "import time\n"
        "deadline = time.monotonic() + 30\n"
        "while not (folder / 'log').read_bytes().endswith(b'done'):\n"
        "    assert time.monotonic() < deadline\n"
        "    time.sleep(0.01)"
    )
    start = time.monotonic()

    log_after(tmp_path, waits)

    assert log.read_bytes().endswith(b"x done")
    assert time.monotonic() - start < 30


def test_no_other_file_is_left(tmp_path: Path) -> None:
    log_after(tmp_path, "")

    assert [p.name for p in tmp_path.iterdir()] == ["log"]
