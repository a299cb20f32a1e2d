"""`capuchin tui --web`: a browser is let in by a person's address, and by nothing else."""

from __future__ import annotations

import asyncio
import json
import re
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from tests.cli.browser import browser
from tests.cli.program import PATIENCE_S, PROGRAM, Project, is_alive, processes_of, wait_until

ADDRESS = re.compile(r"^(\S+)  (http://127\.0\.0\.1:(\d+)/)#(\S+)$")


class Served:
    """A running `capuchin tui --web`."""

    def __init__(self, process: asyncio.subprocess.Process, lines: list[str]) -> None:
        self.process = process
        found = [match for line in lines if (match := ADDRESS.match(line))]
        self.addresses = {match[1]: match[0].split()[1] for match in found}
        self.tokens = {match[1]: match[4] for match in found}
        self.base, self.port = found[0][2], int(found[0][3])

    def visits(self, folder: Path) -> list[int]:
        """The processes that draw for browsers."""
        return [pid for pid, words in processes_of(folder).items() if "--web-visit" in words]


@asynccontextmanager
async def serving(project: Project, *args: str, people: int = 1) -> AsyncIterator[Served]:
    process = await asyncio.create_subprocess_exec(
        *PROGRAM,
        "tui",
        "--web",
        *args,
        cwd=project.folder,
        env=project.environ,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert process.stdout is not None
    try:
        lines = [
            (await asyncio.wait_for(process.stdout.readline(), PATIENCE_S)).decode().strip()
            for _ in range(people)
        ]
        yield Served(process, lines)
    finally:
        if process.returncode is None:
            process.terminate()
        await asyncio.wait_for(process.wait(), PATIENCE_S)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """A project of these tests alone: what waits is counted on the page."""
    project = Project.make(tmp_path_factory.mktemp("web"))
    with project.up("--no-tui"):
        yield project


async def test_a_browser_looks_and_with_leave_decides_under_its_persons_name(
    shop: Project, tmp_path: Path
) -> None:
    sent = await asyncio.to_thread(shop.run, "send", "notes", "note milk", "--json")
    talk = sent.json["conversation"]

    async with serving(shop) as served, browser(tmp_path / "a") as page:
        await page.open(served.addresses["ann"])
        await page.until(lambda t: "read-only" in t and "1 waiting" in t)
        assert await page.run("location.hash + location.search") == ""
        await page.press("F2")
        await page.until(lambda t: "probe.note" in t)
        await page.press("Enter")
        await page.until(lambda t: "● a approve" in t)
        await page.press_until("a", lambda t: "nothing decided" in t.split("read-only", 2)[-1])
    shown = await asyncio.to_thread(shop.run, "inbox", "list", "--json")
    assert [item["conversation"] for item in shown.json] == [talk]

    users = ("--web-user", "ann", "--web-user", "carol", "--web-approve")
    async with serving(shop, *users, people=2) as served, browser(tmp_path / "b") as page:
        assert set(served.tokens) == {"ann", "carol"}
        await page.open(served.addresses["carol"])
        await page.until(lambda t: "1 waiting" in t)
        await page.press("F2")
        await page.until(lambda t: "probe.note" in t)
        await page.press("Enter")
        await page.until(lambda t: "● a approve" in t)
        await page.press_until("a", lambda t: "1 waiting" not in t)
        await asyncio.to_thread(wait_until, lambda: len(served.visits(shop.folder)) == 1)
        visits = served.visits(shop.folder)
    wait_until(lambda: not any(map(is_alive, visits)))
    told = await asyncio.to_thread(shop.run, "show", talk, "--json")
    decided = [e for e in told.json["events"] if e["kind"] == "item_decided"]
    assert [(e["choice"], e["by"]) for e in decided] == [("approve", "carol")]


async def test_a_page_that_is_long_in_loading_opens_one_terminal(
    shop: Project, tmp_path: Path
) -> None:
    """The terminal's script begins by itself when it runs before the page has loaded."""
    late = """document.addEventListener("DOMContentLoaded", () => {
      const script = document.createElement("script");
      script.src = "/late.js";
      document.head.append(script);
    })"""
    async with serving(shop) as served, browser(tmp_path / "l") as page:
        await page.hold("*/late.js")
        await page.call("Page.addScriptToEvaluateOnNewDocument", source=late)
        await page.open(served.addresses["ann"])
        await page.until(lambda t: "read-only" in t)
        assert await page.run("document.readyState") == "interactive"
        loaded = "new Promise(then => addEventListener('load', () => setTimeout(then, 300)))"
        waiting = asyncio.create_task(page.run(loaded))
        await page.run("1")
        await page.refuse_held()
        await waiting

        assert await page.run("document.querySelectorAll('.xterm').length") == 1
        await page.press("F2")
        await page.until(lambda t: "decided (t)" in t)


async def test_another_page_gets_neither_a_terminal_nor_a_ticket(
    shop: Project, tmp_path: Path
) -> None:
    async def evil(_: web.Request) -> web.Response:
        return web.Response(text="<p>evil</p>", content_type="text/html")

    app = web.Application()
    app.add_routes([web.get("/", evil)])
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    foreign = f"http://127.0.0.1:{runner.addresses[0][1]}/"
    try:
        async with serving(shop) as served, browser(tmp_path / "c") as page:
            ticket = await _ticket(served)
            await page.open(foreign)
            await page.run("new Promise(r => setTimeout(r, 300))")
            assert await page.run("document.body.innerText.trim()") == "evil"
            opened = await page.run(
                "new Promise(r => {"
                f" const s = new WebSocket('ws://127.0.0.1:{served.port}/ws/{ticket}');"
                " s.onopen = () => r('open'); s.onerror = () => r('refused'); })"
            )
            fetched = await page.run(
                f"fetch('{served.base}enter', {{method: 'POST', headers: "
                f"{{Authorization: 'Bearer {served.tokens['ann']}'}}}})"
                ".then(() => 'answered', () => 'refused')"
            )
            framed = await page.run(
                "new Promise(r => { const f = document.createElement('iframe');"
                f" f.src = '{served.base}'; f.onload = () => {{"
                " try { r(String(f.contentWindow.location.href)) } catch { r('refused') } };"
                " document.body.append(f); })"
            )
            visits = served.visits(shop.folder)
    finally:
        await runner.cleanup()

    assert (opened, fetched, framed) == ("refused", "refused", "refused")
    assert visits == []


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/", {"Host": "evil.example:{port}"}, 403),
        ("/", {"Host": "localhost:1"}, 403),
        ("/", {"Origin": "https://evil.example"}, 403),
        ("/ws/{ticket}", {}, 403),
        ("/ws/{ticket}", {"Origin": "https://evil.example"}, 403),
        ("/ws/{ticket}", {"Origin": "null"}, 403),
        ("/ws/{ticket}", {"Origin": "http://127.0.0.1:{port}", "Host": "rebound.example"}, 403),
        ("/ws/no-ticket", {"Origin": "http://127.0.0.1:{port}"}, 401),
        ("/ws/{token}", {"Origin": "http://127.0.0.1:{port}"}, 401),
        ("/download/x", {}, 404),
    ],
)
async def test_what_is_not_of_its_own_pages_is_refused(
    served: Served, path: str, headers: dict[str, str], status: int
) -> None:
    words = {"port": served.port, "ticket": await _ticket(served), "token": served.tokens["ann"]}
    sent = {name: value.format(**words) for name, value in headers.items()}
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket"} if "/ws/" in path else {}
    async with aiohttp.ClientSession() as session:
        address = served.base.rstrip("/") + path.format(**words)
        async with session.get(address, headers={**upgrade, **sent}) as answer:
            assert answer.status == status
            assert answer.headers["X-Frame-Options"] == "DENY"


async def test_a_wrong_token_gets_no_ticket_and_a_ticket_opens_once(served: Served) -> None:
    origin = served.base.rstrip("/")
    async with aiohttp.ClientSession(headers={"Origin": origin}) as session:
        for given in ("", "Bearer ", "Bearer wrong", f"Basic {served.tokens['ann']}"):
            async with session.post(f"{origin}/enter", headers={"Authorization": given}) as answer:
                assert answer.status == 401
        ticket = await _ticket(served)
        async with session.ws_connect(f"{origin}/ws/{ticket}?width=80&height=24") as socket:
            assert await socket.receive_bytes(timeout=PATIENCE_S)
            with pytest.raises(aiohttp.WSServerHandshakeError, match="401"):
                await session.ws_connect(f"{origin}/ws/{ticket}")


async def test_it_listens_on_loopback_alone(served: Served) -> None:
    assert _listening(served.port) == ["0100007F"]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
async def test_its_visits_end_with_it(shop: Project, number: signal.Signals) -> None:
    async with serving(shop) as served, aiohttp.ClientSession() as session:
        headers = {"Origin": served.base.rstrip("/")}
        address = f"{served.base}ws/{await _ticket(served)}?width=80&height=24"
        async with session.ws_connect(address, headers=headers) as socket:
            assert await socket.receive_bytes(timeout=PATIENCE_S)
            visits = served.visits(shop.folder)
            assert len(visits) == 1
            served.process.send_signal(number)
            await asyncio.wait_for(served.process.wait(), PATIENCE_S)

    wait_until(lambda: not any(map(is_alive, visits)))


async def test_a_page_that_leaves_ends_its_visit(shop: Project, served: Served) -> None:
    async with aiohttp.ClientSession(headers={"Origin": served.base.rstrip("/")}) as session:
        address = f"{served.base}ws/{await _ticket(served)}?width=80&height=24"
        async with session.ws_connect(address) as socket:
            assert await socket.receive_bytes(timeout=PATIENCE_S)
            visits = served.visits(shop.folder)
            await socket.send_json(["resize", {"width": 10**9, "height": 10**9}])
            await socket.send_json({"no": "envelope"})
            async for _ in socket:
                pass

    wait_until(lambda: not any(map(is_alive, visits)))


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (("--web-approve",), "go with --web"),
        (("--web", "--web-user", "a\nb"), "no printable name"),
        (("--web", "--port", "{taken}"), "127.0.0.1"),
    ],
)
async def test_wrong_use_is_said(
    shop: Project, served: Served, args: tuple[str, ...], word: str
) -> None:
    given = [arg.format(taken=served.port) for arg in args]

    ran = await asyncio.to_thread(shop.run, "tui", *given)

    assert ran.code in (1, 2)
    assert word in ran.err


@pytest.fixture
async def served(shop: Project) -> AsyncIterator[Served]:
    async with serving(shop) as found:
        yield found


def _listening(port: int) -> list[str]:
    """The addresses, as the kernel writes them, where something listens on a port."""
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    found = [address.split(":") for _, address, _, state, *_ in lines if state == "0A"]
    return [host for host, number in found if int(number, 16) == port]


async def _ticket(served: Served) -> str:
    """A fresh ticket, as the page gets it."""
    headers = {
        "Authorization": f"Bearer {served.tokens['ann']}",
        "Origin": served.base.rstrip("/"),
    }
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{served.base}enter", headers=headers) as answer,
    ):
        assert answer.status == 200
        ticket: str = json.loads(await answer.text())["ticket"]
        return ticket
