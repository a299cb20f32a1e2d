"""A web service that tests put in place of the operator's: it keeps what it is asked."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

Reply = tuple[int, bytes]


@dataclass
class Posted:
    """One request."""

    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        """The document."""
        value: dict[str, Any] = json.loads(self.body)
        return value


@dataclass
class Service:
    """A running service on a port of its own."""

    url: str = ""
    posted: list[Posted] = field(default_factory=list)
    reply: Callable[[Posted], Reply] = lambda _: (200, b'{"answer": "allow"}')
    """What it says; may wait for an event of the test."""
    arrived: threading.Event = field(default_factory=threading.Event)


@contextmanager
def service() -> Iterator[Service]:
    """A service that answers on loopback until the end of the block."""
    found = Service()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            size = int(self.headers["Content-Length"])
            request = Posted(dict(self.headers.items()), self.rfile.read(size))
            found.posted.append(request)
            found.arrived.set()
            status, body = found.reply(request)
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("Location", found.url)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    class Quiet(http.server.ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            """Say nothing of a client that did not wait."""

    with Quiet(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        found.url = f"http://127.0.0.1:{server.server_address[1]}/asked?by=capuchin"
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield found
        finally:
            server.shutdown()
            thread.join()
