"""Records a history of every shape that a conversation can take: `python -m tests.engine.record`.

The files go to tests/engine/histories, one per run, sealed with the key below, and are replayed
by test_histories.py for as long as open conversations of that release may exist. Record anew only
what is new: a recorded file is never replaced once its release is out.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import socket
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from temporalio.client import Client

from capuchin_yaml.client.connection import connect_temporal
from capuchin_yaml.client.fleet import Capuchin
from capuchin_yaml.client.home import Home
from capuchin_yaml.client.server import find_or_start
from capuchin_yaml.engine import contract
from capuchin_yaml.engine.agents import ServedAgent
from capuchin_yaml.spec import ApprovalSpec, Limits
from tests.engine.house import House, Talk, lab, open_house
from tests.engine.operator_file import write_operator_config
from tests.engine.outside_server import service

KEY = b"capuchin-yaml: seals recordings only"[:32]
"""No secret: what is sealed with it was made up for tests."""
HISTORIES = Path(__file__).parent / "histories"
ALL = ApprovalSpec(policy="all")

Shape = Callable[[House], Awaitable[Talk]]
SHAPES: dict[str, Shape] = {}


def shape(record: Shape) -> Shape:
    """Add a shape under its function's name."""
    SHAPES[record.__name__.replace("_", "-")] = record
    return record


async def serve(house: House, approval: ApprovalSpec | None = None, **more: Any) -> None:
    """Serve the agent that all shapes talk to."""
    wait = {"tool": "wait", "args": {"name": f"{house.project}-gate"}}
    slow = {"tool": "write_slowly", "args": {"line": "slow", "name": f"{house.project}-gate"}}
    model = house.script(
        {"when": {"user": "write"}, "reply": {"calls": [_call("write", line="one")]}},
        {
            "when": {"user": "many"},
            "reply": {
                "say": "Several at once.",
                "calls": [
                    _call("echo", text="hello"),
                    _call("write", line="two"),
                    _call("refuse", why="closed today"),
                    _call("no_such_tool"),
                    _call("echo"),
                ],
            },
        },
        {"when": {"user": "break"}, "reply": {"calls": [_call("write_and_break", line="three")]}},
        {"when": {"user": "flaky"}, "reply": {"calls": [_call("flaky", times=1)]}},
        {"when": {"user": "away"}, "reply": {"calls": [_call("away")]}},
        {"when": {"user": "wait"}, "reply": {"calls": [wait]}},
        {"when": {"user": "slowly"}, "reply": {"calls": [slow]}},
        {"when": {"user": "shown"}, "reply": {"calls": [_call("write_shown", line="four")]}},
        {"when": {"user": "think"}, "reply": {"say": "thought", "delay_s": 30}},
        {"when": {"user": "refused"}, "reply": {"fail": {"status": 400}}},
        {"when": {"user": "again and again"}, "reply": {"calls": [_call("echo", text="again")]}},
        {
            "when": {"result": "again", "tool": "echo"},
            "reply": {"calls": [_call("echo", text="again")]},
        },
        default={"say": "done"},
    )
    tools = (
        *("echo", "write", "refuse", "write_and_break", "flaky", "away", "wait"),
        *("write_slowly", "write_shown"),
    )
    house.agent("recorded", model, *(f"lab.{t}" for t in tools), approval=approval, **more)


def _call(tool: str, **args: object) -> dict[str, object]:
    return {"tool": tool, "args": args}


def gate(house: House) -> str:
    """The gate of the tools that wait."""
    return f"{house.project}-gate"


@shape
async def plain_turns(house: House) -> Talk:
    """Three messages, three answers."""
    await serve(house)
    talk = await house.talk("recorded", "hello")
    for text in ("more", "and more"):
        await talk.idle()
        await talk.send(text)
    await talk.idle()
    return talk


@shape
async def no_message(house: House) -> Talk:
    """Started without a word, then closed."""
    await serve(house)
    talk = await house.talk("recorded", None)
    await talk.idle()
    await talk.close()
    return talk


@shape
async def parallel_calls(house: House) -> Talk:
    """Calls that succeed, fail, are unknown and have wrong arguments, in one reply."""
    await serve(house)
    talk = await house.talk("recorded", "many")
    await talk.idle()
    return talk


@shape
async def repeated_calls(house: House) -> Talk:
    """A tool that loses the connection, and one that is away for a while."""
    await serve(house)
    talk = await house.talk("recorded", "flaky")
    await talk.idle()
    await talk.send("away")
    await talk.idle()
    return talk


@shape
async def approved(house: House) -> Talk:
    """Approved with a time limit that was not reached."""
    await serve(house, ApprovalSpec(policy="all", timeout_s=3600))
    talk = await house.talk("recorded", "write")
    await talk.decide(await talk.item(), "approve")
    await talk.idle()
    return talk


@shape
async def denied(house: House) -> Talk:
    """Denied with a reason."""
    await serve(house, ALL)
    talk = await house.talk("recorded", "write")
    await talk.decide(await talk.item(), "deny", reason="not today")
    await talk.idle()
    return talk


@shape
async def expired(house: House) -> Talk:
    """Nobody decided in time."""
    await serve(house, ApprovalSpec(policy="all", timeout_s=1.0))
    talk = await house.talk("recorded", "write")
    await talk.idle()
    return talk


@shape
async def expired_and_closed(house: House) -> Talk:
    """Nobody decided in time, which closes."""
    await serve(house, ApprovalSpec(policy="all", timeout_s=1.0, on_timeout="close"))
    talk = await house.talk("recorded", "write")
    await talk.handle.result()
    return talk


@shape
async def edited(house: House) -> Talk:
    """A person changed the arguments, once to what cannot run, which was asked again."""
    await serve(house, ALL)
    talk = await house.talk("recorded", "write")
    await talk.decide(await talk.item(), "edit", arguments=json.dumps({"line": "better"}))
    await talk.idle()
    await talk.send("write")
    first = await talk.item()
    await talk.decide(first, "edit", arguments=json.dumps({"lines": 5}))
    await talk.until(lambda s: bool(s["items"]) and s["items"][0]["id"] != first["id"])
    await talk.decide(await talk.item(), "approve")
    await talk.idle()
    return talk


@shape
async def granted(house: House) -> Talk:
    """A grant lets one more call through, and the next asks."""
    await serve(house, ALL)
    talk = await house.talk("recorded", "write")
    await talk.decide(await talk.item(), "approve", grant={"scope": "tool", "times": 1})
    await talk.idle()
    await talk.send("write")
    await talk.idle()
    await talk.send("write")
    await talk.decide(await talk.item(), "approve")
    await talk.idle()
    return talk


@shape
async def previewed(house: House) -> Talk:
    """The tool showed what it would do."""
    await serve(house, ALL)
    talk = await house.talk("recorded", "shown")
    await talk.decide(await talk.item(), "approve")
    await talk.idle()
    return talk


@shape
async def approved_by_several(house: House) -> Talk:
    """Two of a group approved, one edited, and others were asked when time was up."""
    with _operator(house, groups={"finance": ["ann", "bob"], "managers": ["mia"]}):
        approval = ApprovalSpec(
            policy="all",
            approvers="finance",
            quorum=2,
            timeout_s=3.0,
            on_timeout="escalate",
            escalate_to="managers",
            remind_s=2.0,
        )
        await serve(house, approval)
        talk = await house.talk("recorded", "write")
        item = await talk.item()
        await talk.decide(item, "approve", by="ann")
        await talk.decide(item, "approve", by="bob")
        await talk.idle()
        await talk.send("write")
        first = await talk.item()
        await talk.decide(first, "edit", by="ann", arguments=json.dumps({"line": "better"}))
        await talk.until(lambda s: any(i["escalated"] for i in s["items"]))
        await talk.decide(await talk.item(), "approve", by="mia")
        await talk.idle()
        return talk


@shape
async def asked_outside(house: House) -> Talk:
    """The gate allowed, asked and denied, and hooks were told of what waited."""
    answers = ["allow", "ask", "allow", "deny"]
    with service() as gate, service() as hook:
        gate.reply = lambda _: (200, json.dumps({"answer": answers.pop(0)}).encode())
        notify = [{"webhook": hook.url}]
        with _operator(house, gate={"url": gate.url}, notify=notify):
            await serve(house)
            talk = await house.talk("recorded", "write")
            await talk.idle()
            await talk.send("write")
            await talk.decide(await talk.item(), "approve")
            await talk.idle()
            await talk.send("write")
            await talk.idle()
            return talk


@shape
async def outcome_happened(house: House) -> Talk:
    """Nobody knew, and it had happened."""
    await serve(house)
    talk = await house.talk("recorded", "break")
    await talk.decide(await talk.item("outcome"), "happened", result="wrote three")
    await talk.idle()
    return talk


@shape
async def outcome_rerun(house: House) -> Talk:
    """Nobody knew; it was run again, and then given up."""
    await serve(house)
    talk = await house.talk("recorded", "break")
    first = await talk.item("outcome")
    await talk.decide(first, "rerun")
    await talk.until(lambda s: bool(s["items"]) and s["items"][0]["id"] != first["id"])
    await talk.decide(await talk.item("outcome"), "failed", result="never mind")
    await talk.idle()
    return talk


@shape
async def limit_and_on(house: House) -> Talk:
    """A limit was reached, passed once, and stopped the turn the second time."""
    await serve(house, limits=Limits(same_call=2, max_steps=20))
    talk = await house.talk("recorded", "again and again")
    first = await talk.item("limit")
    await talk.decide(first, "go_on")
    await talk.until(lambda s: bool(s["items"]) and s["items"][0]["id"] != first["id"])
    await talk.decide(await talk.item("limit"), "stop")
    await talk.idle()
    return talk


@shape
async def model_refused(house: House) -> Talk:
    """The provider refused the request."""
    await serve(house)
    talk = await house.talk("recorded", "refused")
    await talk.idle()
    return talk


@shape
async def cancelled_while_thinking(house: House) -> Talk:
    """Cancelled in a model call, and talked to again."""
    await serve(house)
    talk = await house.talk("recorded", "think")
    await talk.until(lambda s: s["turn"] == 1)
    await asyncio.sleep(0.3)
    await talk.cancel()
    await talk.idle()
    await talk.send("hello")
    await talk.idle()
    return talk


@shape
async def cancelled_while_asking(house: House) -> Talk:
    """Cancelled while an approval waited."""
    await serve(house, ALL)
    talk = await house.talk("recorded", "many")
    await talk.item()
    await talk.cancel()
    await talk.idle()
    await talk.send("hello")
    await talk.idle()
    return talk


@shape
async def cancelled_while_reading(house: House) -> Talk:
    """Cancelled while a repeatable tool ran."""
    await serve(house)
    talk = await house.talk("recorded", "wait")
    await asyncio.to_thread(lab.entered(gate(house)).wait, 30)
    await talk.cancel()
    await talk.idle()
    lab.gate(gate(house)).set()
    return talk


@shape
async def cancelled_while_writing(house: House) -> Talk:
    """Cancelled while a one-attempt tool ran; the question stayed open and was answered."""
    await serve(house)
    talk = await house.talk("recorded", "slowly")
    await asyncio.to_thread(lab.entered(gate(house)).wait, 30)
    await talk.cancel()
    item = await talk.item("outcome")
    await talk.decide(item, "failed", result="stopped by hand")
    lab.gate(gate(house)).set()
    await talk.send("hello")
    await talk.idle()
    return talk


@shape
async def queued(house: House) -> Talk:
    """Messages waited behind a running turn."""
    await serve(house)
    talk = await house.talk("recorded", "wait")
    await asyncio.to_thread(lab.entered(gate(house)).wait, 30)
    await talk.send("one more")
    await talk.send("and another")
    lab.gate(gate(house)).set()
    await talk.idle()
    return talk


@shape
async def rolled_over(house: House) -> Talk:
    """Several runs, one of them begun while an approval waited."""
    await serve(house, ApprovalSpec(policy="denylist", tools=("lab.write",), timeout_s=3600))
    await _restart(house, roll_over_events=40)
    talk = await house.talk("recorded", "many")
    await _send_insistently(talk, "note 0")
    item = await talk.item()
    for i in range(1, 14):
        await _send_insistently(talk, f"note {i}")
    await talk.until(lambda s: s["run"] >= 2)
    await talk.decide(item, "approve")
    await talk.idle()
    return talk


@shape
async def not_pinned(house: House) -> Talk:
    """The agent was not there."""
    talk = await house.talk("nobody", "hello")
    await talk.until(lambda s: s["status"] == "failed")
    return talk


@shape
async def closed_while_running(house: House) -> Talk:
    """Closed in the middle of a turn."""
    await serve(house, ALL)
    talk = await house.talk("recorded", "write")
    await talk.item()
    await talk.close()
    await talk.handle.result()
    return talk


@shape
async def closed_when_idle(house: House) -> Talk:
    """Nobody came back."""
    await serve(house, limits=Limits(idle_close_s=1.0))
    talk = await house.talk("recorded", "hello")
    await talk.idle()
    await talk.send("once more")
    await talk.handle.result()
    return talk


@shape
async def migrated(house: House) -> Talk:
    """Migrated once to a file that is there, and once to one that is not."""
    await serve(house)
    talk = await house.talk("recorded", "hello")
    await talk.idle()
    served = house.agents.get("recorded")
    assert served is not None
    house.agents.put(ServedAgent(replace(served.spec, version="9.9.9")))
    await talk.update(contract.MIGRATE, contract.Migrate(**talk.fields()))
    await talk.send("write")
    await talk.idle()
    house.agents.drop("recorded")
    await talk.update(contract.MIGRATE, contract.Migrate(**talk.fields()))
    await talk.send("more")
    await talk.idle()
    return talk


@shape
async def paused(house: House) -> Talk:
    """Held before its first step, cancelled, held again and resumed."""
    await serve(house)
    fleet = Capuchin(house.client, project=house.project, program="recorder")
    await fleet.pause("recorded", by="ann", reason="deploy")
    talk = await house.talk("recorded", "hello")
    await talk.until(lambda s: s["paused"] is not None)
    await talk.cancel()
    await talk.idle()
    await talk.send("write")
    await talk.until(lambda s: s["paused"] is not None)
    await fleet.resume("recorded")
    await talk.idle()
    return talk


@shape
async def renamed(house: House) -> Talk:
    """Given a title by a person."""
    await serve(house)
    talk = await house.talk("recorded", "hello")
    await talk.idle()
    await talk.update(contract.RENAME, contract.Rename(**talk.fields(title="A title")))
    await talk.send("hello again")
    await talk.idle()
    return talk


@shape
async def reopened(house: House) -> Talk:
    """Closed and opened again."""
    await serve(house)
    talk = await house.talk("recorded", "write")
    await talk.idle()
    await talk.close()
    await talk.handle.result()
    fleet = Capuchin(house.client, project=house.project, program="recorder")
    await fleet.conversation(talk.id).reopen(by="ann")
    await talk.send("write")
    await talk.idle()
    return talk


@contextlib.contextmanager
def _operator(house: House, **blocks: Any) -> Iterator[None]:
    """An operator's config for the worker in this process."""
    before = os.environ.get("XDG_CONFIG_HOME")
    folder = house.folder / "config"
    write_operator_config(folder.absolute(), **blocks)
    os.environ["XDG_CONFIG_HOME"] = str(folder.absolute())
    try:
        yield
    finally:
        if before is None:
            del os.environ["XDG_CONFIG_HOME"]
        else:
            os.environ["XDG_CONFIG_HOME"] = before


async def _send_insistently(talk: Talk, text: str) -> None:
    request = contract.SendMessage(**talk.fields(text=text))
    while True:
        with contextlib.suppress(Exception):
            await talk.update(contract.SEND_MESSAGE, request)
            return
        await asyncio.sleep(0.05)


async def _restart(house: House, **settings: Any) -> None:
    await house.stop_worker()
    house.settings = replace(house.settings, **settings)
    await house.start_worker()


async def record(name: str, client: Client, folder: Path) -> None:
    """Record one shape, every run of it."""
    place = folder / name
    place.mkdir()
    async with open_house(client, place) as house:
        talk = await SHAPES[name](house)
        fleet = Capuchin(client, project=house.project, program="recorder")
        runs = [history async for history in fleet.histories([talk.id])]
    for n, history in enumerate(runs, 1):
        suffix = f".{n}" if len(runs) > 1 else ""
        value = history.to_json_dict()
        text = _without_places(json.dumps(value, separators=(",", ":")))
        await asyncio.to_thread((HISTORIES / f"{name}{suffix}.json").write_text, text + "\n")


async def main(names: list[str]) -> None:
    """Record these shapes on a server of their own."""
    home = Home.find(Path("home")).open(create=True)
    home.make_key()
    async with await find_or_start(home) as server:
        client = await connect_temporal(server.target, key=KEY, identity="recorder")
        for name in names:
            await record(name, client, Path("shapes"))
            print(name, flush=True)  # noqa: T201 a program of its own


def _without_places(text: str) -> str:
    """Write the folders of this machine, which stack traces name, as ones of no machine."""
    places = {
        str(Path(__file__).parents[2]): "/srv/capuchin",
        sys.prefix: "/srv/venv",
        sys.base_prefix: "/usr",
        tempfile.gettempdir(): "/srv/tmp",
        socket.gethostname(): "host",
    }
    for place, name in sorted(places.items(), key=lambda p: -len(p[0])):
        text = (
            text.replace(f"{place}/", f"{name}/")
            if "/" in place
            else text.replace(f"@{place}", f"@{name}")
        )
    return text


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("names", nargs="*", choices=[*SHAPES, []], help="all without one")
    given = arguments.parse_args()
    HISTORIES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="capuchin-record-") as scratch:
        # Why: a history names the script of its model, and nobody's folders belong in it.
        os.chdir(scratch)
        Path("shapes").mkdir()
        Path("home").mkdir()
        asyncio.run(main(given.names or list(SHAPES)))
