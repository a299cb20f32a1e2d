"""Every state of the TUI as a scene: a world, and the keys that lead to what is to be seen."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta

from textual.pilot import Pilot
from textual.widgets import Input, TextArea

from capuchin_yaml.spec import VariableSpec
from capuchin_yaml.tui.app import CapuchinApp
from capuchin_yaml.tui.gateway import AgentCard, Gateway
from capuchin_yaml.tui.presence import Other
from capuchin_yaml.tui.screens.frame import Frame
from tests.tui.conftest import text_of
from tests.tui.fake_gateway import FakeGateway, FakeTalk

SIZES = ((120, 40), (80, 24), (40, 12))
_STILL_FOR, _KEPT_FOR = 8, 2
"""How often a screen must look the same to be at rest; as it was kept, a slip is no risk."""
TALK = "demo.billing-a91f00"
REPLY = """Order **A-1001** was late, so a refund is fair.

- ordered 3 November, delivered 21 November
- paid `42.00 USD`

```json
{"order_id": "A-1001", "paid_cents": 4200}
```
"""


@dataclass(frozen=True)
class Scene:
    """One state."""

    build: Callable[[FakeGateway], str | None]
    """Fills the world; returns the conversation to open."""
    keys: tuple[str, ...] = ()
    later: Callable[[FakeGateway], None] | None = None
    """What happens after the keys."""
    connects: bool = True
    cards: bool = True
    others: tuple[str, ...] = ()
    """Terminals that have the same project open."""


def _talk(fake: FakeGateway) -> FakeTalk:
    other = fake.add("triage", id="demo.triage-00b711", title="Sort the mail of Monday")
    fake.pin(other)
    fake.turn(other, "Sort the mail of Monday")
    fake.say(other, "Done: 14 letters in 3 heaps.")
    fake.spend(other, 4_100)
    fake.end(other)
    talk = fake.add("billing", id=TALK)
    fake.pin(talk)
    fake.turn(talk, "I need a refund for order A-1001")
    call = fake.call(talk, 1, "billing.lookup_order", '{"order_id":"A-1001"}', "allow", "look")
    fake.run(talk, call, '{"paid_cents": 4200, "late": true}')
    fake.say(talk, REPLY)
    fake.spend(talk, 12_000)
    return talk


def _idle(fake: FakeGateway) -> str:
    fake.end(_talk(fake))
    return TALK


def _waiting(fake: FakeGateway) -> str:
    talk = _talk(fake)
    fake.call(talk, 2)
    fake.open_item(talk, 2)
    return TALK


def _outcome(fake: FakeGateway) -> str:
    talk = _talk(fake)
    fake.call(talk, 2)
    fake.open_item(talk, 2, kind="outcome", title="issue_refund may or may not have happened")
    return TALK


def _limit(fake: FakeGateway) -> str:
    talk = _talk(fake)
    title = "8 model calls are used up; go on?"
    fake.open_item(talk, 2, kind="limit", tool="", alias="", arguments="", title=title)
    return TALK


def _many(fake: FakeGateway) -> str:
    _waiting(fake)
    other = fake.talks["demo.triage-00b711"]
    fake.turn(other, "and Tuesday")
    fake.call(other, 1)
    fake.open_item(other, 1)
    fake.open_item(other, 2, tool="mail.send", alias="send", arguments='{"to":"bert"}')
    return TALK


def _claimed(fake: FakeGateway) -> str:
    _waiting(fake)
    talk = fake.talks[TALK]
    until = (fake.now + timedelta(minutes=4)).isoformat()
    for item in list(talk.items.values()):
        talk.items[item.id] = replace(item, claimed_by="bert", claimed_until=until)
    return TALK


def _granted(fake: FakeGateway) -> str:
    talk = _talk(fake)
    fake.allow(talk)
    fake.allow(talk, "call", 1)
    return TALK


def _changed(fake: FakeGateway) -> None:
    item = next(iter(fake.talks[TALK].items.values()))
    fake.settle(item, "edit", "bert", arguments='{"amount_cents":2100,"order_id":"A-1001"}')


def _held(fake: FakeGateway) -> str:
    fake.workers = 0
    return _idle(fake)


def _form(fake: FakeGateway) -> str:
    fake.cards = (
        AgentCard(
            "sales",
            "0.3.0",
            "Answers questions about products.",
            policy="auto: everything runs",
            variables={
                "company": VariableSpec(required=True, description="The shop."),
                "tone": VariableSpec(default="kind", enum=("kind", "short")),
            },
            injected=("tenant",),
        ),
    )
    return _idle(fake)


def _empty(fake: FakeGateway) -> None:
    return None


def _failed(detail: str) -> Callable[[FakeGateway], str]:
    def build(fake: FakeGateway) -> str:
        fake.end(_talk(fake), "model_unavailable", detail)
        return TALK

    return build


def _rolled(fake: FakeGateway) -> str:
    talk = _talk(fake)
    fake.end(talk)
    fake.emit(talk, "rolled_over", previous_run_id="0a1b")
    fake.turn(talk, "and A-1002?")
    return TALK


def _settle(choice: str, by: str, reason: str) -> Callable[[FakeGateway], None]:
    def later(fake: FakeGateway) -> None:
        item = next(iter(fake.talks[TALK].items.values()))
        fake.settle(item, choice, by, reason)  # type: ignore[arg-type]  # a word of the engine

    return later


def _close(fake: FakeGateway) -> None:
    talk = fake.talks[TALK]
    talk.status = "closed"
    fake.emit(talk, "conversation_closed", status="closed", by="bert", detail="done")


def _down(fake: FakeGateway) -> None:
    fake.go_down()


def _no_worker(fake: FakeGateway) -> str:
    fake.workers = 0
    return _idle(fake)


def _running(fake: FakeGateway) -> str:
    _talk(fake)
    return TALK


def _stream(fake: FakeGateway) -> None:
    fake.stream(fake.talks[TALK], "Looking **it up** and down, with a [bracket")


SCENES: dict[str, Scene] = {
    "starting": Scene(_empty, connects=False),
    "empty": Scene(_empty),
    "empty-no-agents": Scene(_empty, cards=False),
    "empty-inbox": Scene(_idle, ("f2",)),
    "filter-finds-nothing": Scene(_idle, ("ctrl+b", "slash", "x", "y")),
    "chat": Scene(_idle),
    "streaming": Scene(_running, later=_stream),
    "approval-arrives": Scene(_waiting),
    "inbox": Scene(_waiting, ("f2",)),
    "item": Scene(_waiting, ("f2", "enter")),
    "deny-reason": Scene(_waiting, ("f2", "enter", "+read", "d", "+box")),
    "change-form": Scene(_waiting, ("f2", "enter", "+read", "e", "+box")),
    "change-json": Scene(_waiting, ("f2", "enter", "+read", "e", "+box", "ctrl+t")),
    "change-refused": Scene(
        _waiting,
        ("f2", "enter", "+read", "e", "+box", "backspace", "x", "ctrl+s"),
    ),
    "changed-item": Scene(
        _waiting,
        ("f2", "enter", "+read", "e", "+box", "backspace", "ctrl+s", "+screen", "+read"),
    ),
    "remember": Scene(
        _waiting,
        ("f2", "enter", "+read", "r", "+box", *"tool", "tab", "3"),
    ),
    "remember-rule-for-all": Scene(_waiting, ("f2", "enter", "+read", "r", "+box", "ctrl+y")),
    "grants": Scene(_granted, ("f2", "b")),
    "grants-none": Scene(_idle, ("f2", "b")),
    "unknown-outcome": Scene(_outcome, ("f2", "enter", "+read")),
    "limit": Scene(_limit, ("f2", "enter", "+read")),
    "many-wait": Scene(_many, ("f2", "m", "down", "z")),
    "claimed-by-another": Scene(_claimed, ("f2", "enter", "+read")),
    "decided-with-changes": Scene(_waiting, ("f2", "t"), _changed),
    "held-message": Scene(_held, (*"hello", "enter")),
    "start-form": Scene(_form, ("ctrl+n", "enter")),
    "close-for-good": Scene(_idle, ("/", *"close", "enter", "+box")),
    "decided-elsewhere": Scene(_waiting, ("f2", "enter"), _settle("deny", "bert", "too late")),
    "expired": Scene(_waiting, ("f2", "enter"), _settle("expired", "", "")),
    "decided": Scene(_waiting, ("f2", "t"), _settle("approve", "bert", "fine")),
    "conversation-ended": Scene(_idle, later=_close),
    "server-away": Scene(_idle, later=_down),
    "server-away-inbox": Scene(_waiting, ("f2", "enter"), _down),
    "no-worker": Scene(_no_worker),
    "turn-failed": Scene(_failed("529 overloaded")),
    "model-refuses-the-key": Scene(_failed("401 from the provider: set ANTHROPIC_API_KEY")),
    "rate-limit": Scene(_failed("429: the provider asks to wait 40 s")),
    "rolled-over": Scene(_rolled),
    "events": Scene(_idle, ("f3",)),
    "events-raw": Scene(_idle, ("f3", "v")),
    "costs": Scene(_idle, ("f4",)),
    "agents-with-a-fault": Scene(_idle, ("f5",)),
    "palette": Scene(_idle, ("ctrl+p",)),
    "help": Scene(_idle, ("f1",)),
    "slash-menu": Scene(_idle, ("/", "c")),
    "find": Scene(_idle, ("ctrl+f", *"late", "enter")),
    "new-conversation": Scene(_idle, ("ctrl+n",)),
    "leaving-while-a-turn-runs": Scene(_running, ("ctrl+q",)),
    "history-search": Scene(_idle, (*"hello", "enter", "ctrl+r", "+box")),
    "second-terminal": Scene(_waiting, others=("pts/3",)),
    "too-small": Scene(_idle, ("+small",)),
}


async def dump(name: str, size: tuple[int, int], kept: str = "") -> str:
    """The screen of a scene as text, the same at every run."""
    return await drawn(name, size, lambda app: text_of(app) + "\n", kept)


async def drawn(
    name: str, size: tuple[int, int], take: Callable[[CapuchinApp], str], kept: str = ""
) -> str:
    """What is taken of a scene once nothing changes any more; sooner if it is what was kept."""
    scene = SCENES[name]
    fake = FakeGateway()
    start = scene.build(fake)
    if scene.cards and not fake.cards:
        fake.cards = (
            AgentCard(
                "billing",
                "1.2.0",
                "Looks up orders and refunds them.",
                "scripted:demo",
                "denylist: asks before billing.issue_refund; everything else runs",
            ),
            AgentCard("sales", problem="agents/sales.yaml:4:3: model has no key 'max_ouput'"),
        )
    app = CapuchinApp(_connect(fake, scene), start=start, clock=lambda: 0.0, poll_s=3600)
    app.presence.others = lambda: tuple(  # type: ignore[method-assign]  # of this scene
        Other(name, "bert", "2026-11-30T12:00:00+00:00") for name in scene.others
    )
    now = fake.now
    before, Frame.now = Frame.now, lambda self: now  # type: ignore[method-assign]  # a still clock
    try:
        async with app.run_test(size=size) as pilot:
            await _until(pilot, lambda: not scene.connects or app.desk.fleet.link.is_up)
            await _until(pilot, lambda: start is None or app.chat.talk is not None)
            if start:
                await _until(pilot, lambda: app.desk.talk(start).is_current)
            await _until(pilot, lambda: not scene.connects or app.desk.fleet.agents == fake.cards)
            await _press(app, pilot, scene)
            if scene.later is not None:
                scene.later(fake)
                await pilot.pause(0.15)
                await app.desk.refresh()
            if scene.others:
                await _until(pilot, lambda: app.others)
            return await _still(app, pilot, take, kept)
    finally:
        Frame.now = before  # type: ignore[method-assign]  # as it was


async def _press(app: CapuchinApp, pilot: Pilot[int], scene: Scene) -> None:
    for key in scene.keys:
        if key == "+small":
            await pilot.resize_terminal(30, 8)
        elif key == "+read":
            await _read(app, pilot)
        elif key == "+screen":
            await _until(pilot, lambda: isinstance(app.screen, Frame))
        elif key == "+box":
            await _until(pilot, lambda: not isinstance(app.screen, Frame))
        else:
            await pilot.press(key)
        await pilot.pause()


async def _read(app: CapuchinApp, pilot: Pilot[int]) -> None:
    """Read the item on show to its end, and wait until its keys act."""
    for _ in range(400):
        if app.guard.armed(app.event_clock()):
            return
        if app.guard.unseen:
            await pilot.press("pagedown")
        await pilot.pause(0.02)
    raise AssertionError("the keys of the item do not come to life")


def _connect(fake: FakeGateway, scene: Scene) -> Callable[[], Awaitable[Gateway]]:
    async def connect() -> Gateway:
        if not scene.connects:
            await asyncio.Event().wait()
        return fake

    return connect


async def _until(pilot: Pilot[int], is_true: Callable[[], object]) -> None:
    for _ in range(1500):
        if is_true():
            return
        await pilot.pause(0.02)
    raise AssertionError("the scene does not come to rest")


async def _still(
    app: CapuchinApp, pilot: Pilot[int], take: Callable[[CapuchinApp], str], kept: str
) -> str:
    """Wait until notices are gone and nothing changes any more."""
    app._notice = ((), 0.0)
    for line in app.screen.query(Input):
        line.cursor_blink = False
    for box in app.screen.query(TextArea):
        box.cursor_blink = False
    last, same = "", 0
    for _ in range(100):
        app._draw_soon()
        await pilot.pause(0.06)
        taken = take(app)
        same = same + 1 if taken == last else 0
        if same >= (_KEPT_FOR if taken == kept else _STILL_FOR):
            return taken
        last = taken
    raise AssertionError("the screen does not come to rest")
