"""What an editor with the real yaml-language-server makes of an agent file."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from capuchin_yaml.compiler.editor_schema import editor_schema
from tests.compiler.packages import PaperSource
from tests.editor.language_server import Editor, editor

AGENT = """\
# yaml-language-server: $schema=agent.schema.json
apiVersion: capuchin/v1
name: shop
prompt: Hi.
limts: {max_steps: 3}
tools:
  - billing.lookup_order
  - use: billing.issue_refund
    config: {curency: USD}
  - billing.nothing
  -_
approval:
  policy: auto
  rules:
    - tool: billing.issue_refund
      when:_
      then: deny
""".replace("_\n", " \n")
"""Ends of lines where something is to be written hold a blank."""


@dataclass(frozen=True)
class Session:
    """One open file."""

    editor: Editor
    file: Path
    diagnostics: list[dict[str, Any]]

    def place(self, text: str) -> tuple[Path, int, int]:
        """Where a text of the file ends."""
        before = AGENT[: AGENT.index(text) + len(text)]
        return self.file, before.count("\n"), len(before.rpartition("\n")[2])


@pytest.fixture(scope="module")
async def session(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Session]:
    folder = tmp_path_factory.mktemp("editor")
    (folder / "agent.schema.json").write_text(json.dumps(editor_schema(PaperSource())))
    file = folder / "agent.yaml"
    file.write_text(AGENT)
    async with editor(folder) as opened:
        yield Session(opened, file, await opened.open(file))


async def test_the_names_of_installed_tools_are_offered(session: Session) -> None:
    offered = await session.editor.complete(*session.place("billing.nothing\n  - "))

    assert {"billing.lookup_order", "billing.issue_refund", "clock.now"} <= set(offered)


async def test_arguments_of_the_tool_are_offered_in_a_condition(session: Session) -> None:
    offered = await session.editor.complete(*session.place("when: "))

    assert "args.amount_cents" in offered


async def test_a_key_that_nobody_knows_is_marked(session: Session) -> None:
    marked = [d for d in session.diagnostics if "limts" in d["message"]]

    assert [d["range"]["start"]["line"] for d in marked] == [4]


async def test_a_key_of_the_packages_config_that_it_does_not_have_is_marked(
    session: Session,
) -> None:
    assert [
        d["range"]["start"]["line"] for d in session.diagnostics if "curency" in d["message"]
    ] == [8]


async def test_a_tool_that_is_not_installed_is_marked(session: Session) -> None:
    assert 9 in [d["range"]["start"]["line"] for d in session.diagnostics]


async def test_hover_explains_a_key(session: Session) -> None:
    text = await session.editor.hover(*session.place("polic"))

    assert "`denylist` gates the listed" in text


async def test_hover_on_a_condition_names_the_arguments(session: Session) -> None:
    text = await session.editor.hover(*session.place("      whe"))

    assert "args.amount_cents" in text
