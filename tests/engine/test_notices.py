"""Whom the operator names is told of what opens, waits long, or goes to others."""

from __future__ import annotations

import hashlib
import hmac
import json
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from capuchin_yaml.spec import ApprovalSpec
from tests.engine.house import House, Talk
from tests.engine.operator_file import write_operator_config
from tests.engine.outside_server import service

Operator = Callable[..., Path]
ALL = ApprovalSpec(policy="all")


@pytest.fixture
def operator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Operator:
    """Writes the operator's config that the worker of this test reads."""
    folder = tmp_path / "config"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder))
    return lambda **blocks: write_operator_config(folder, **blocks)


async def asking(house: House, approval: ApprovalSpec = ALL) -> Talk:
    model = house.script(
        {"when": {"user": "go"}, "reply": {"calls": [{"tool": "write", "args": {"line": "one"}}]}},
        default={"say": "done"},
    )
    house.agent("telling", model, "lab.write", approval=approval)
    return await house.talk("telling", "go")


def program(folder: Path, body: str) -> Path:
    """A hook as a program of its own; `out` is the file it may write to."""
    path = folder / "hook"
    path.write_text(
        f"#!{sys.executable}\nimport json, os, sys\nout = {str(folder / 'out')!r}\n{body}"
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


async def written(talk: Talk, folder: Path, lines: int = 1) -> list[dict[str, Any]]:
    """What the hook wrote, one JSON document a line."""
    out = folder / "out"
    await talk.until(lambda _: out.exists() and out.read_text().count("\n") >= lines)
    return [json.loads(line) for line in out.read_text().splitlines()]


async def told(talk: Talk) -> None:
    """Wait until the outbox is empty."""

    async def empty(_: Any) -> bool:
        described = await talk.handle.describe()
        return not described.raw_description.pending_activities

    await talk.until(empty)


async def test_a_program_gets_the_notice_on_stdin_and_a_bare_environment(
    house: House, operator: Operator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAGER_TOKEN", "t")
    monkeypatch.setenv("OTHER_SECRET", "s")
    hook = program(
        tmp_path,
        "notice = json.load(sys.stdin)\n"
        "line = {'notice': notice, 'env': sorted(os.environ), 'args': sys.argv[1:]}\n"
        "open(out, 'a').write(json.dumps(line) + '\\n')\n",
    )
    command = [str(hook), "--team", "$(touch /tmp/never); finance"]
    operator(notify=[{"command": command, "env": ["PAGER_TOKEN"]}])
    talk = await asking(house)
    item = await talk.item()
    [line] = await written(talk, tmp_path)

    assert line["notice"]["event"] == "opened"
    assert (line["notice"]["agent"], line["notice"]["conversation"]) == ("telling", talk.id)
    assert line["notice"]["item"]["id"] == item["id"]
    assert line["notice"]["item"]["arguments"] == '{"line":"one"}'
    assert line["args"] == ["--team", "$(touch /tmp/never); finance"]
    assert "PAGER_TOKEN" in line["env"]
    assert "OTHER_SECRET" not in line["env"]


async def test_a_webhook_is_signed_and_posted_again_until_it_is_taken(
    house: House, operator: Operator, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("hush\n")
    secret.chmod(0o600)
    with service() as found:
        found.reply = lambda _: (503, b"") if len(found.posted) < 3 else (204, b"")
        operator(notify=[{"webhook": found.url, "secret": {"file": str(secret)}}])
        talk = await asking(house)
        await talk.until(lambda _: len(found.posted) >= 3)
        await told(talk)
    ids = {posted.headers["X-Capuchin-Delivery"] for posted in found.posted}
    last = found.posted[-1]
    text = last.headers["X-Capuchin-Time"].encode() + b"." + last.body
    signed = hmac.new(b"hush", text, hashlib.sha256).hexdigest()

    assert len(found.posted) == 3
    assert ids == {last.json["id"]}
    assert last.headers["X-Capuchin-Signature"] == f"sha256={signed}"


async def test_one_hook_that_fails_does_not_have_the_others_told_twice(
    house: House, operator: Operator
) -> None:
    with service() as good, service() as bad:
        good.reply = lambda _: (200, b"")
        bad.reply = lambda _: (500, b"") if len(bad.posted) < 2 else (200, b"")
        operator(notify=[{"webhook": good.url}, {"webhook": bad.url}])
        talk = await asking(house)
        await talk.until(lambda _: len(bad.posted) >= 2)
        await told(talk)

        assert (len(good.posted), len(bad.posted)) == (1, 2)


async def test_a_decision_waits_for_no_hook(house: House, operator: Operator) -> None:
    with service() as found:
        found.reply = lambda _: (500, b"")
        operator(notify=[{"webhook": found.url}])
        talk = await asking(house)
        await talk.decide(await talk.item(), "approve")
        state = await talk.idle()

    assert state["status"] == "idle"
    assert house.effects() == ["one"]


async def test_reminders_and_escalations_are_told_and_only_to_who_wants_them(
    house: House, operator: Operator
) -> None:
    with service() as all_of_it, service() as late, service() as others:
        for found in (all_of_it, late, others):
            found.reply = lambda _: (200, b"")
        operator(
            groups={"managers": ["mia"]},
            notify=[
                {"webhook": all_of_it.url},
                {"webhook": late.url, "on": ["escalated"]},
                {"webhook": others.url, "agents": ["others"]},
            ],
        )
        approval = ApprovalSpec(
            policy="all",
            timeout_s=0.9,
            on_timeout="escalate",
            escalate_to="managers",
            remind_s=0.4,
        )
        talk = await asking(house, approval)
        await talk.until(lambda _: len(late.posted) >= 1)
        await talk.idle()
        await told(talk)
        events = [posted.json["event"] for posted in all_of_it.posted]

        assert {"opened", "reminder", "escalated"} == set(events)
        assert [posted.json["event"] for posted in late.posted] == ["escalated"]
        assert others.posted == []


async def test_without_hooks_an_item_costs_no_activity(house: House, operator: Operator) -> None:
    operator(notify=[{"bell": True}])
    talk = await asking(house)
    await talk.item()
    history = await talk.handle.fetch_history()
    scheduled = [
        e.activity_task_scheduled_event_attributes.activity_type.name
        for e in history.events
        if e.HasField("activity_task_scheduled_event_attributes")
    ]

    assert "notify" not in scheduled
