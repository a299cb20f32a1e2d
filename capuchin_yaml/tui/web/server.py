"""The TUI in a browser: textual-serve behind a door of our own, on loopback only."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from aiohttp import WSCloseCode, WSMsgType, web
from textual_serve.server import Server, to_int

from capuchin_yaml.tui.web.door import Door
from capuchin_yaml.tui.web.session import Session

MAX_VISITS = 8
IDLE_S = 1800.0
"""A visit without a key for this long is ended."""
_MAX_MESSAGE = 1 << 20
_STOP_S = 12.0
_HERE = Path(__file__).parent
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; connect-src 'self' {ws}; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Permissions-Policy": "clipboard-read=(), camera=(), microphone=(), geolocation=()",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_log = logging.getLogger(__name__)


class WebServer(Server):
    """Serves a TUI for each visit of the people of `door`."""

    def __init__(
        self,
        command: Sequence[str],
        door: Door,
        listener: socket.socket,
        *,
        idle_s: float = IDLE_S,
    ) -> None:
        """Run `command` for each visit, with CAPUCHIN_USER set to the visitor's name."""
        port = listener.getsockname()[1]
        super().__init__(" ".join(command), host="127.0.0.1", port=port)
        self._words = tuple(command)
        self._door = door
        self._listener = listener
        self._idle_s = idle_s
        self._visits: set[web.WebSocketResponse] = set()

    async def run(self, on_ready: Callable[[], None]) -> int:
        """Serve until a signal comes, and return its number; every visit is ended then."""
        loop = asyncio.get_running_loop()
        told: asyncio.Future[int] = loop.create_future()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, _tell, told, number)
        runner = web.AppRunner(await self._make_app(), access_log=None, shutdown_timeout=_STOP_S)
        await runner.setup()
        try:
            await web.SockSite(runner, self._listener).start()
            on_ready()
            return int(await told)
        finally:
            await runner.cleanup()

    async def _make_app(self) -> web.Application:
        app = web.Application(middlewares=[self._guard], client_max_size=4096)
        app.add_routes(
            [
                web.get("/", self._file("page.html", "text/html")),
                web.get("/page.js", self._file("page.js", "text/javascript")),
                web.get("/page.css", self._file("page.css", "text/css")),
                web.post("/enter", self._enter),
                web.get("/ws/{ticket}", self.handle_websocket),
                web.static("/static", self.statics_path),
            ]
        )
        app.on_response_prepare.append(self._add_headers)
        app.on_shutdown.append(self._end_visits)
        return app

    @web.middleware
    async def _guard(
        self,
        request: web.Request,
        handler: Callable[[web.Request], Awaitable[web.StreamResponse]],
    ) -> web.StreamResponse:
        """Answer requests of our own pages only."""
        is_act = request.method != "GET" or request.path.startswith("/ws/")
        hosts = request.headers.getall("Host", [""])
        origins = request.headers.getall("Origin", [])
        refusal = self._door.refusal(
            hosts[0] if len(hosts) == 1 else "",
            origins[0] if origins else None,
            needs_origin=is_act,
        )
        if refusal is not None or len(origins) > 1:
            _log.warning("a request was refused: %s", refusal)
            return web.Response(status=403, text=f"Refused: {refusal}.\n")
        return await handler(request)

    async def _enter(self, request: web.Request) -> web.Response:
        """Change a person's token for a ticket."""
        kind, _, token = request.headers.get("Authorization", "").partition(" ")
        entered = self._door.enter(token) if kind == "Bearer" else None
        if entered is None:
            _log.warning("a wrong token was offered")
            return web.Response(status=401, text="This key opens nothing here.")
        name, ticket = entered
        return web.json_response({"name": name, "ticket": ticket})

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """Run a TUI for whoever holds a fresh ticket, until either side goes."""
        name = self._door.admit(request.match_info["ticket"])
        if name is None:
            raise web.HTTPUnauthorized(text="This ticket is used up or unknown.\n")
        if len(self._visits) >= MAX_VISITS:
            raise web.HTTPServiceUnavailable(text=f"{MAX_VISITS} visits are open already.\n")
        websocket = web.WebSocketResponse(heartbeat=15, max_msg_size=_MAX_MESSAGE)
        self._visits.add(websocket)
        session = Session(
            self._words,
            {"CAPUCHIN_USER": name},
            write_bytes=websocket.send_bytes,
            write_str=websocket.send_str,
            close=websocket.close,
            download_manager=self.download_manager,
        )
        try:
            await websocket.prepare(request)
            width, height = (to_int(request.query.get(k, ""), 80) for k in ("width", "height"))
            await session.start(width, height)
            _log.info("visit of %s, process %s", name, session.pid)
            await self._carry(websocket, session)
        finally:
            self._visits.discard(websocket)
            with suppress(ConnectionError):
                await session.stop()
        return websocket

    async def _carry(self, websocket: web.WebSocketResponse, session: Session) -> None:
        """Hand on what the page sends; whatever is not of its protocol ends the visit."""
        clock = asyncio.get_running_loop().time
        last_key = clock()
        async for message in websocket:
            match _envelope(message.data if message.type == WSMsgType.TEXT else None):
                case ["stdin", str(data)]:
                    last_key = clock()
                    await session.send_bytes(data.encode("utf-8", "replace"))
                case ["resize", {"width": int(width), "height": int(height)}]:
                    await session.set_terminal_size(width, height)
                case ["ping", data]:
                    await websocket.send_json(["pong", data])
                case ["focus", *_]:
                    await session.focus()
                case ["blur", *_]:
                    await session.blur()
                case _:
                    await websocket.close(code=WSCloseCode.UNSUPPORTED_DATA)
                    return
            if clock() - last_key > self._idle_s:
                await websocket.close(code=WSCloseCode.GOING_AWAY, message=b"idle")
                return

    async def _end_visits(self, _: web.Application) -> None:
        for websocket in set(self._visits):
            await websocket.close(code=WSCloseCode.GOING_AWAY)

    async def _add_headers(self, request: web.Request, response: web.StreamResponse) -> None:
        for name, value in _HEADERS.items():
            response.headers[name] = value.format(ws=f"ws://{request.headers.get('Host', '')}")

    def _file(self, name: str, kind: str) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        text = (_HERE / name).read_text(encoding="utf-8")

        async def answer(_: web.Request) -> web.StreamResponse:
            return web.Response(text=text, content_type=kind)

        return answer


def _tell(told: asyncio.Future[int], number: int) -> None:
    if not told.done():
        told.set_result(number)


def loopback(port: int) -> socket.socket:
    """A socket that listens on this machine only; port 0 takes a free one.

    Raises:
        OSError: the port is taken.
    """
    return socket.create_server(("127.0.0.1", port))


def addresses(door: Door, port: int) -> Mapping[str, str]:
    """For each person the address that signs in under that name."""
    return {name: f"http://127.0.0.1:{port}/#{token}" for name, token in door.tokens.items()}


def _envelope(data: object) -> Any:
    try:
        return json.loads(data) if isinstance(data, str) else None
    except ValueError:
        return None
