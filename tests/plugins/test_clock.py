"""The clock package, which authors copy."""

from __future__ import annotations

import pytest

from capuchin_yaml.errors import ToolFailed
from capuchin_yaml.testing import check_package, run_tool


def test_the_package_is_sound() -> None:
    assert set(check_package("clock").tools) == {"now", "sleep", "block"}


def test_the_time_is_told_in_the_zone_that_was_asked_for() -> None:
    assert '"zone": "Asia/Tokyo"' in run_tool("clock.now", {"zone": "Asia/Tokyo"}).text


def test_the_zone_of_whoever_started_the_talk_wins() -> None:
    run = run_tool("clock.now", {"zone": "UTC"}, injected={"time_zone": "Europe/Paris"})

    assert '"zone": "Europe/Paris"' in run.text


@pytest.mark.parametrize("zone", ["Nowhere/Land", "", "../../etc/passwd", "a\x00b"])
def test_a_zone_that_does_not_exist_is_a_failed_call(zone: str) -> None:
    with pytest.raises(ToolFailed, match="there is no time zone"):
        run_tool("clock.now", {"zone": zone})


async def test_sleep_says_that_it_is_alive_also_inside_a_running_loop() -> None:
    run = run_tool("clock.sleep", {"seconds": 0.01})

    assert run.text == "waited 0.01 s"
    assert len(run.heartbeats) >= 1


def test_block_says_nothing() -> None:
    run = run_tool("clock.block", {"seconds": 0.01})

    assert (run.text, run.heartbeats) == ("blocked for 0.01 s", ())


@pytest.mark.parametrize("seconds", [-1, 3601, "soon"])
def test_a_wait_has_bounds(seconds: object) -> None:
    with pytest.raises(ToolFailed, match="seconds"):
        run_tool("clock.sleep", {"seconds": seconds})
