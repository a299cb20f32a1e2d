"""Who else has the same project open: seen while they live, forgotten however they end."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from capuchin_yaml.tui.presence import Presence
from tests.tui.conftest import running, text_of, until
from tests.tui.fake_gateway import FakeGateway

OTHER = """
import sys, time
from pathlib import Path
from capuchin_yaml.tui.presence import Presence
Presence(Path(sys.argv[1])).enter("bert", "pts/[3]")
print("here", flush=True)
time.sleep(600)
"""


def other(home: Path) -> subprocess.Popen[str]:
    """Another process that has the project open."""
    process = subprocess.Popen(
        [sys.executable, "-c", OTHER, str(home)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "here\n"
    return process


def test_one_that_was_killed_is_seen_no_more_and_leaves_no_file(tmp_path: Path) -> None:
    here = Presence(tmp_path)
    here.enter("anna", "pts/1")
    with other(tmp_path) as process:
        [seen] = here.others()
        process.send_signal(signal.SIGKILL)
    gone = here.others()
    files = list((tmp_path / "tui").iterdir())
    here.leave()

    assert (seen.user, seen.terminal, gone) == ("bert", "pts/[3]", ())
    assert len(files) == 1
    assert list((tmp_path / "tui").iterdir()) == []


def test_what_is_no_file_of_a_tui_is_not_told(tmp_path: Path) -> None:
    (tmp_path / "tui").mkdir()
    (tmp_path / "tui" / "1.json").write_text("no JSON")
    (tmp_path / "tui" / "2.json").symlink_to("/etc/hostname")

    assert Presence(tmp_path).others() == ()
    assert Presence(None).others() == ()


async def test_a_second_terminal_says_so_and_what_is_decided_there_shows_up_here(
    fake: FakeGateway, tmp_path: Path
) -> None:
    talk = fake.add(id="demo.billing-a91f00")
    fake.pin(talk)
    fake.turn(talk, "refund A-1001 please")
    item = fake.open_item(talk)
    with other(tmp_path) as process:
        async with running(fake, start=talk.id, home=tmp_path) as (app, pilot):
            await until(pilot, lambda: "also open in pts/[3] (bert)" in text_of(app))
            await pilot.press("f2", "enter")
            await until(pilot, lambda: "tool       billing.issue_refund" in text_of(app))
            fake.settle(item, "approve", "bert")
            await until(pilot, lambda: "✔ approved by bert" in text_of(app))
            process.kill()
            await until(pilot, lambda: "also open" not in text_of(app))
