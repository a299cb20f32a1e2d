"""The real yaml-language-server over stdio, spoken to as an editor does."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

VERSION = "1.25.0"
PLACE = "YAML_LANGUAGE_SERVER"
"""Environment variable with the server's program, as .ci/run sets it."""
PATIENCE_S = 60.0


def server_program() -> Path:
    """The server's program: the one that is named, else one that npm installs, once."""
    named = os.environ.get(PLACE)
    if named:
        return Path(named)
    npm = shutil.which("npm")
    assert npm is not None, f"install npm, or name yaml-language-server in {PLACE}"
    folder = Path(tempfile.gettempdir()) / f"capuchin-yaml-language-server-{VERSION}-{os.getuid()}"
    program = folder / "node_modules" / ".bin" / "yaml-language-server"
    if not program.exists():
        folder.mkdir(mode=0o700, exist_ok=True)
        wanted = f"yaml-language-server@{VERSION}"
        subprocess.run(
            [
                npm,
                "install",
                "--silent",
                "--no-audit",
                "--no-fund",
                "--prefix",
                str(folder),
                wanted,
            ],
            check=True,
        )
    return program


class Editor:
    """One session with the server."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._diagnostics: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._last = 0

    async def open(self, file: Path) -> list[dict[str, Any]]:
        """Open a file as it is on disk; its diagnostics once the server has them."""
        self._notify("textDocument/didOpen", {"textDocument": _document(file)})
        while True:
            said = await asyncio.wait_for(self._diagnostics.get(), PATIENCE_S)
            if said["uri"] == file.as_uri():
                found: list[dict[str, Any]] = said["diagnostics"]
                return found

    async def complete(self, file: Path, line: int, character: int) -> list[str]:
        """What the server offers at a place, both counted from 0."""
        answer = await self._ask("textDocument/completion", _place(file, line, character))
        items = answer["items"] if isinstance(answer, dict) else answer
        return [str(item["label"]) for item in items]

    async def hover(self, file: Path, line: int, character: int) -> str:
        """What the server says of a place."""
        answer = await self._ask("textDocument/hover", _place(file, line, character))
        return str(answer["contents"]["value"]) if answer else ""

    async def start(self, folder: Path) -> None:
        """Shake hands."""
        reads = asyncio.create_task(self._read())
        reads.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._reads = reads
        capabilities = {
            "workspace": {"configuration": True},
            "textDocument": {
                "hover": {"contentFormat": ["markdown"]},
                "publishDiagnostics": {},
                "completion": {"completionItem": {"documentationFormat": ["markdown"]}},
            },
        }
        await self._ask(
            "initialize",
            {"processId": None, "rootUri": folder.as_uri(), "capabilities": capabilities},
        )
        self._notify("initialized", {})

    async def stop(self) -> None:
        """Say goodbye."""
        await self._ask("shutdown", None)
        self._notify("exit", None)
        await asyncio.wait_for(self._process.wait(), PATIENCE_S)
        self._reads.cancel()

    async def _ask(self, method: str, params: object) -> Any:
        self._last += 1
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._answers[self._last] = answer
        self._send({"id": self._last, "method": method, "params": params})
        return await asyncio.wait_for(answer, PATIENCE_S)

    def _notify(self, method: str, params: object) -> None:
        self._send({"method": method, "params": params})

    def _send(self, message: dict[str, Any]) -> None:
        data = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._process.stdin is not None
        self._process.stdin.write(f"Content-Length: {len(data)}\r\n\r\n".encode() + data)

    async def _read(self) -> None:
        stream = self._process.stdout
        assert stream is not None
        while True:
            header = (await stream.readuntil(b"\r\n\r\n")).decode()
            length = int(header.partition("Content-Length:")[2].split("\r\n")[0])
            self._take(json.loads(await stream.readexactly(length)))

    def _take(self, message: dict[str, Any]) -> None:
        method = message.get("method")
        if method is None:
            answer = self._answers.pop(message["id"])
            if "error" in message:
                answer.set_exception(RuntimeError(str(message["error"])))
            else:
                answer.set_result(message.get("result"))
        elif method == "textDocument/publishDiagnostics":
            self._diagnostics.put_nowait(message["params"])
        elif method == "workspace/configuration":
            # Without this the server would ask the network for schemas.
            quiet = {"schemaStore": {"enable": False}, "validate": True}
            both = {"hover": True, "completion": True}
            settings = [
                {**quiet, **both} if item.get("section") == "yaml" else {}
                for item in message["params"]["items"]
            ]
            self._send({"id": message["id"], "result": settings})
        elif "id" in message:
            self._send({"id": message["id"], "result": None})


@asynccontextmanager
async def editor(folder: Path) -> AsyncIterator[Editor]:
    """An editor on a folder, with its server running."""
    process = await asyncio.create_subprocess_exec(
        "node",
        str(server_program()),
        "--stdio",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    session = Editor(process)
    try:
        await session.start(folder)
        yield session
        await session.stop()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def _document(file: Path) -> dict[str, Any]:
    text = file.read_text(encoding="utf-8")
    return {"uri": file.as_uri(), "languageId": "yaml", "version": 1, "text": text}


def _place(file: Path, line: int, character: int) -> dict[str, Any]:
    return {
        "textDocument": {"uri": file.as_uri()},
        "position": {"line": line, "character": character},
    }
