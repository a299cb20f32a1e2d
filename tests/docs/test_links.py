"""Pages hold together: links lead somewhere, every page is on the map, and the prose is plain."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import DOCS, README, ROOT, Page, pages

MAP = DOCS / "index.md"
GENERATED = {DOCS / "reference" / "cli.md"}
"""Pages whose sentences are those of the program."""
IDS = [str(page.path.relative_to(ROOT)) for page in pages()]


@pytest.mark.parametrize("page", pages(), ids=IDS)
def test_every_link_leads_somewhere(page: Page) -> None:
    for line, target in page.links:
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        file = (page.path.parent / path).resolve() if path else page.path
        assert file.exists(), f"{page.path}:{line}: {target}"
        if anchor:
            text = Page(file, file.read_text(encoding="utf-8"))
            assert anchor in [h.anchor for h in text.headings], f"{page.path}:{line}: {target}"


def test_every_page_is_on_the_map_and_the_readme_leads_to_it() -> None:
    [index] = [page for page in pages() if page.path == MAP]
    [readme] = [page for page in pages() if page.path == README]
    linked = {(MAP.parent / target).resolve() for _, target in index.links}

    assert {page.path for page in pages()} - {MAP} <= linked
    assert "docs/index.md" in [target for _, target in readme.links]


@pytest.mark.parametrize("page", pages(), ids=IDS)
def test_a_page_has_one_title_and_one_sentence_a_line(page: Page) -> None:
    assert [h.level for h in page.headings].count(1) == 1
    for number, line in page.prose:
        told = re.sub(r"`[^`]*`|\([^)]*\)", "", line)
        is_plain = not line.startswith(("|", "-", "#", "<", " ", "1", "2", "3", "4", "5"))
        is_plain = is_plain and page.path not in GENERATED
        assert not (is_plain and re.search(r"[a-z]\. [A-Z]", told)), f"{page.path}:{number}"


@pytest.mark.parametrize("page", pages(), ids=IDS)
def test_the_prose_of_a_page_is_plain_text(page: Page) -> None:
    for number, line in page.prose:
        assert line == line.rstrip(), f"{page.path}:{number}: blanks at the end"
        assert line.isascii(), f"{page.path}:{number}: {line!r}"
        assert not re.search(r"/(home|root|tmp|Users)/", line), f"{page.path}:{number}"


def test_decisions_are_numbered_and_have_their_four_parts() -> None:
    decisions = sorted((DOCS / "decisions").glob("*.md"))

    assert [int(path.name[:4]) for path in decisions] == list(range(1, len(decisions) + 1))
    for path in decisions:
        page = Page(path, path.read_text(encoding="utf-8"))
        assert page.headings[0].name.startswith(f"{path.name[:4]}: ")
        parts = [h.name for h in page.headings if h.level == 2]
        assert parts[:4] == ["Context", "Decision", "Status", "Consequences"]
        assert set(parts[4:]) <= {"Revisited"}
