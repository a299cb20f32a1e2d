"""A headless Chromium, driven through its own protocol, with a terminal page in it."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import json
import re
import shutil
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pyte

from tests.cli.program import PATIENCE_S
from tests.tui.terminal import known

_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-background-networking",
    "--no-first-run",
    "--remote-debugging-port=0",
    "--window-size=1280,900",
    "about:blank",
)
_KEYS = {
    "Enter": ("\r", 13),
    "Escape": ("", 27),
    "F1": ("", 112),
    "F2": ("", 113),
    "PageDown": ("", 34),
}


class Page:
    """One page; `text` is what its terminal shows, as far as its websocket told."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._screen = pyte.Screen(200, 80)
        self._stream = pyte.ByteStream(self._screen)
        self.refused: list[str] = []
        """Websockets that were not opened, each with the reason the browser has."""
        self.held: list[str] = []
        """Requests that `hold` caught."""
        self._reader = asyncio.create_task(self._read())

    @property
    def text(self) -> str:
        """The terminal."""
        return "\n".join(line.rstrip() for line in self._screen.display)

    async def open(self, address: str) -> None:
        """Go to an address."""
        # Why: a page that the browser does not think is looked at drops every key.
        await self.call("Emulation.setFocusEmulationEnabled", enabled=True)
        await self.call("Page.bringToFront")
        await self.call("Page.navigate", url=address)

    async def hold(self, pattern: str) -> None:
        """Keep requests for addresses like this one from being answered, until `refuse_held`."""
        await self.call("Fetch.enable", patterns=[{"urlPattern": pattern}])

    async def refuse_held(self) -> None:
        """Let what was held fail."""
        while self.held:
            await self.call("Fetch.failRequest", requestId=self.held.pop(), errorReason="Aborted")

    async def run(self, script: str) -> Any:
        """What an expression of the page is worth, once it is settled."""
        found = await self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        return found["result"].get("value")

    async def press(self, *keys: str) -> None:
        """Press keys by name, or type single letters."""
        await self.run("document.querySelector('.xterm-helper-textarea').focus()")
        for key in keys:
            text, code = _KEYS.get(key, (key, ord(key[0].upper())))
            common = {"key": key, "windowsVirtualKeyCode": code}
            down = {"type": "keyDown", "text": text} if text else {"type": "rawKeyDown"}
            await self.call("Input.dispatchKeyEvent", **common, **down)
            await self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    async def press_until(self, key: str, is_true: Callable[[str], object]) -> None:
        """Press a key that acts only after a quiet, again when it did nothing."""
        end = time.monotonic() + PATIENCE_S
        while True:
            await asyncio.sleep(0.5)
            await self.press(key)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(5):
                    return await self.until(is_true)
            assert time.monotonic() < end, f"the page shows:\n{self.text}"

    async def until(self, is_true: Callable[[str], object]) -> None:
        """Wait until the terminal is as wanted."""
        end = time.monotonic() + PATIENCE_S
        while not is_true(self.text):
            assert time.monotonic() < end, f"the page shows:\n{self.text}"
            await asyncio.sleep(0.05)

    async def call(self, method: str, **options: Any) -> dict[str, Any]:
        """One request of the protocol."""
        number = next(self._numbers)
        self._answers[number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": number, "method": method, "params": options})
        found = await asyncio.wait_for(self._answers[number], PATIENCE_S)
        assert "error" not in found, found
        result: dict[str, Any] = found["result"]
        return result

    async def close(self) -> None:
        """Stop listening."""
        self._reader.cancel()
        await asyncio.gather(self._reader, return_exceptions=True)

    async def _read(self) -> None:
        async for message in self._socket:
            told = json.loads(message.data)
            if "id" in told:
                self._answers.pop(told["id"]).set_result(told)
            elif told["method"] == "Network.webSocketFrameReceived":
                frame = told["params"]["response"]
                if frame["opcode"] == 2:
                    self._stream.feed(known(base64.b64decode(frame["payloadData"])))
            elif told["method"] == "Fetch.requestPaused":
                self.held.append(told["params"]["requestId"])
            elif told["method"] == "Network.webSocketFrameError":
                self.refused.append(told["params"]["errorMessage"])


@asynccontextmanager
async def browser(folder: Path) -> AsyncIterator[Page]:
    """A browser with a page, ended at the end; it needs the package `chromium`."""
    program = shutil.which("chromium")
    assert program is not None, "the tests of the web view need chromium: apt install chromium"
    process = await asyncio.create_subprocess_exec(
        program,
        *_FLAGS,
        f"--user-data-dir={folder / 'profile'}",
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        port = await asyncio.wait_for(_port(process), PATIENCE_S)
        async with aiohttp.ClientSession() as session:
            async with session.put(f"http://127.0.0.1:{port}/json/new?about:blank") as answer:
                target = await answer.json(content_type=None)
            async with session.ws_connect(
                target["webSocketDebuggerUrl"], max_msg_size=1 << 26
            ) as socket:
                page = Page(socket)
                for domain in ("Page", "Network", "Runtime"):
                    await page.call(f"{domain}.enable")
                # Why: a page without the focus gets no keys, and headless nobody gives it any.
                await page.call("Emulation.setFocusEmulationEnabled", enabled=True)
                try:
                    yield page
                finally:
                    await page.close()
    finally:
        if process.returncode is None:
            process.terminate()
        await process.communicate()


async def _port(process: asyncio.subprocess.Process) -> int:
    assert process.stderr is not None
    async for line in process.stderr:
        if found := re.search(rb"DevTools listening on ws://127\.0\.0\.1:(\d+)/", line):
            return int(found[1])
    raise AssertionError("chromium ended before it was ready")
