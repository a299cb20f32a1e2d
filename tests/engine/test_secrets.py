"""A secret of the worker is found nowhere: history, database, heartbeats, store or logs."""

from __future__ import annotations

import asyncio
import base64
import http.server
import json
import logging
import threading
import urllib.parse
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from capuchin_yaml.client.home import Home
from capuchin_yaml.engine.storage import FolderStore
from tests.engine.house import House, Talk, lab, open_house

MARKER = "sk-marked/7Q+x9Zk2-0f3b5d7e"
SIGNS = tuple(
    sign.encode()
    for sign in (
        MARKER,
        urllib.parse.quote(MARKER),
        urllib.parse.quote(MARKER, safe=""),
        MARKER.encode().hex(),
        *(base64.b64encode(b"x" * n + MARKER.encode()).decode()[2:-4] for n in range(3)),
        MARKER[-14:],
    )
)
"""Any of these would give it away; the last is what a cut would leave of it."""


@pytest.fixture
async def house(
    temporal: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[House]:
    """A house whose worker has a key."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", MARKER)
    store = FolderStore(tmp_path / "store")
    async with open_house(temporal, tmp_path, store=store) as opened:
        yield opened


def leaker(house: House, how: str, name: str = "ANTHROPIC_API_KEY") -> str:
    model = house.script(
        {
            "when": {"user": "go"},
            "reply": {"calls": [{"tool": "leak", "args": {"name": name, "how": how}}]},
        },
        default={"say": "done"},
    )
    house.agent("leaker", model, "lab.leak")
    return "leaker"


async def seen_by_the_server(talk: Talk) -> bytes:
    """All of the run's history, as it is stored."""
    history = await talk.handle.fetch_history()
    return b"".join(e.SerializeToString() for e in history.events)


def signs_in(data: bytes) -> list[bytes]:
    return [sign for sign in SIGNS if sign in data]


@pytest.mark.parametrize("how", ["return", "raise", "fail", "print"])
async def test_what_a_tool_repeats_is_replaced_by_the_name(
    house: House, how: str, caplog: pytest.LogCaptureFixture, dev_home: Home
) -> None:
    with caplog.at_level(logging.DEBUG):
        talk = await house.talk(leaker(house, how), "go")
        await talk.idle()
    [ended] = [e for e in await talk.events() if e["kind"] == "tool_ended"]
    shown = json.dumps([await talk.events(), await talk.entries()])

    assert "logged [secret ANTHROPIC_API_KEY]" in caplog.text
    assert signs_in(caplog.text.encode()) == []
    assert signs_in(await seen_by_the_server(talk)) == []
    assert signs_in(shown.encode()) == []
    if how != "raise":
        assert "[secret ANTHROPIC_API_KEY]" in ended["text"]
    for file in (*dev_home.path.glob("temporal.db*"), *house.folder.rglob("*")):
        if file.is_file():
            assert signs_in(file.read_bytes()) == []


async def test_heartbeats_of_a_tool_are_scrubbed(house: House) -> None:
    talk = await house.talk(leaker(house, "beat"), "go")
    await asyncio.to_thread(lab.entered("ANTHROPIC_API_KEY").wait, 10)
    async with asyncio.timeout(10):
        while True:
            beats = await heartbeats(talk)
            if b"said" in beats:
                break
            await asyncio.sleep(0.05)
    lab.gate("ANTHROPIC_API_KEY").set()
    await talk.idle()

    assert b"[secret ANTHROPIC_API_KEY]" in beats
    assert signs_in(beats) == []


async def heartbeats(talk: Talk) -> bytes:
    """The details of all running activities, as whoever asks the server gets them."""
    described = await talk.handle.describe()
    return b"".join(
        p.data
        for pending in described.raw_description.pending_activities
        for p in pending.heartbeat_details.payloads
    )


async def test_a_streamed_reply_never_shows_half_a_secret(house: House) -> None:
    model = house.script(default={"say": f"word {MARKER} word " * 6, "stream_chunk_s": 0.05})
    house.agent("talker", model)
    talk = await house.talk("talker", "go")
    seen = []
    while (await talk.state())["status"] != "idle":
        seen.append(await heartbeats(talk))
        await asyncio.sleep(0.02)
    said = await talk.last_words()

    assert said.startswith("word [secret ANTHROPIC_API_KEY] word")
    assert any(b"word" in beat for beat in seen)
    assert all(b"sk-mark" not in beat and signs_in(beat) == [] for beat in seen)
    assert signs_in(await seen_by_the_server(talk)) == []


class _Refuses(http.server.BaseHTTPRequestHandler):
    """A provider that repeats the key in its refusal."""

    def do_POST(self) -> None:  # the name that http.server wants
        self.rfile.read(int(self.headers["content-length"]))
        message = f"invalid x-api-key {self.headers['x-api-key']}"
        error = {"type": "authentication_error", "message": message}
        body = json.dumps({"type": "error", "error": error}).encode()
        self.send_response(401)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A provider on this machine that takes no key."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Refuses) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("ANTHROPIC_BASE_URL", f"http://127.0.0.1:{server.server_port}")
        yield
        server.shutdown()


async def test_a_refused_key_is_not_repeated(
    house: House, provider: None, caplog: pytest.LogCaptureFixture
) -> None:
    house.agent("claude", "anthropic:claude-opus-4-8")
    with caplog.at_level(logging.DEBUG):
        talk = await house.talk("claude", "go")
        await talk.idle(timeout_s=60)
    ended = (await talk.events())[-1]

    assert ended["outcome"] == "model_rejected"
    assert signs_in(json.dumps(ended).encode()) == []
    assert signs_in(await seen_by_the_server(talk)) == []
    assert signs_in(caplog.text.encode()) == []


async def test_a_record_that_a_library_logs_with_its_trace_is_scrubbed(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    try:
        raise ValueError(f"bad key {MARKER}")
    except ValueError:
        logging.getLogger("some.library").exception("request failed: %s", {"key": MARKER})

    assert signs_in(caplog.text.encode()) == []
    assert caplog.text.count("[secret ANTHROPIC_API_KEY]") == 2
