"""The pages of the docs as data: fences, headings and links."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
README = ROOT / "README.md"

_FENCE = re.compile(r"^```(?P<info>.*)$")
_HEADING = re.compile(r"^(?P<level>#{1,6}) (?P<text>.+)$")
_LINK = re.compile(r"\[[^\]]+\]\((?P<target>[^)\s]+)\)")
_CODE = re.compile(r"`[^`]*`")


@dataclass(frozen=True)
class Fence:
    """One fenced block; `options` are the words after the language, such as `file=agent.yaml`."""

    page: Path
    line: int
    language: str
    options: Mapping[str, str]
    text: str

    @property
    def place(self) -> str:
        """Where it stands, for messages and test ids."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"


@dataclass(frozen=True)
class Heading:
    """One heading; `body` is everything up to the next heading of its level or above."""

    level: int
    text: str
    body: str

    @property
    def name(self) -> str:
        """The heading without its code marks."""
        return self.text.replace("`", "")

    @property
    def anchor(self) -> str:
        """What a link to it says after the `#`."""
        kept = re.sub(r"[^\w\- ]", "", self.name.lower())
        return kept.replace(" ", "-")


@dataclass(frozen=True)
class Page:
    """One page."""

    path: Path
    text: str

    @property
    def fences(self) -> tuple[Fence, ...]:
        """Its fences in order."""
        return tuple(_fences(self))

    @property
    def prose(self) -> list[tuple[int, str]]:
        """Its numbered lines outside fences."""
        lines: list[tuple[int, str]] = []
        inside = False
        for number, line in enumerate(self.text.splitlines(), start=1):
            if _FENCE.match(line):
                inside = not inside
            elif not inside:
                lines.append((number, line))
        return lines

    @property
    def headings(self) -> tuple[Heading, ...]:
        """Its headings in order."""
        lines = self.text.splitlines()
        found = [
            (number, len(match["level"]), match["text"].strip())
            for number, line in self.prose
            if (match := _HEADING.match(line))
        ]
        ends = [
            next((n for n, level, _ in found[i + 1 :] if level <= found[i][1]), len(lines) + 1)
            for i in range(len(found))
        ]
        return tuple(
            Heading(level, text, "\n".join(lines[number : end - 1]))
            for (number, level, text), end in zip(found, ends, strict=True)
        )

    @property
    def links(self) -> list[tuple[int, str]]:
        """Line and target of its links."""
        return [
            (number, match["target"])
            for number, line in self.prose
            for match in _LINK.finditer(_CODE.sub("", line))
        ]

    def heading(self, name: str) -> Heading:
        """The one heading of this name."""
        [found] = [heading for heading in self.headings if heading.name == name]
        return found


@cache
def page(name: str) -> Page:
    """The page at a path under `docs/`."""
    path = DOCS / name
    return Page(path, path.read_text(encoding="utf-8"))


@cache
def pages() -> tuple[Page, ...]:
    """The README and every page of the docs."""
    paths = [README, *sorted(DOCS.rglob("*.md"))]
    return tuple(Page(path, path.read_text(encoding="utf-8")) for path in paths)


def fences(*languages: str) -> list[Fence]:
    """Every fence of these languages, on all pages."""
    return [f for each in pages() for f in each.fences if f.language in languages]


def shown_after(fence: Fence) -> str | None:
    """The `text` fence that stands next after `fence`: what it prints; None without one."""
    following = [f for f in Page(fence.page, _text(fence.page)).fences if f.line > fence.line]
    return following[0].text if following and following[0].language == "text" else None


@cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _fences(of: Page) -> Iterator[Fence]:
    start, info = 0, ""
    body: list[str] = []
    for number, line in enumerate(of.text.splitlines(), start=1):
        match = _FENCE.match(line)
        if match is None:
            body.append(line)
        elif start:
            language, _, rest = info.partition(" ")
            options = dict(word.partition("=")[::2] for word in rest.split())
            yield Fence(of.path, start, language, options, "".join(f"{b}\n" for b in body))
            start = 0
        else:
            start, info, body = number, match["info"].strip(), []
    assert not start, f"{of.path}:{start}: a fence is never closed"
