"""A result may carry files, and a preview is declared with its tool."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from capuchin_yaml.errors import InvalidTool, ToolFailed
from capuchin_yaml.tools import tool_result
from capuchin_yaml.tools.api import Artifact, ToolContext, preview_hash, tool


def test_an_artifact_is_text_bytes_or_a_file(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"\0file")

    assert Artifact("a", data="é").content() == "é".encode()
    assert Artifact("a", data=b"\0").content() == b"\0"
    assert Artifact("a", path=tmp_path / "f").content() == b"\0file"


def test_an_artifact_needs_exactly_one_source(tmp_path: Path) -> None:
    for wrong in (Artifact("a.txt"), Artifact("a.txt", data="x", path=tmp_path)):
        with pytest.raises(ToolFailed, match=r"'a\.txt' needs either data or a path"):
            wrong.content()


def test_what_is_no_plain_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), tmp_path, tmp_path / "none"):
        with pytest.raises(ToolFailed, match=r"'a' (is not a plain file|cannot be read)"):
            Artifact("a", path=path).content()


def test_a_large_artifact_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_result, "MAX_ARTIFACT_BYTES", 4)
    (tmp_path / "f").write_bytes(b"12345")
    for large in (Artifact("a", data="12345"), Artifact("a", path=tmp_path / "f")):
        with pytest.raises(ToolFailed, match="is over"):
            large.content()


def test_a_preview_must_take_what_its_tool_takes() -> None:
    def show(amount: int, extra: str) -> str:
        return f"{amount}{extra}"

    with pytest.raises(InvalidTool, match=r"takes amount, extra; .* 'pay': amount"):

        @tool(preview=show)
        def pay(amount: int, ctx: ToolContext) -> str:
            """Pay."""
            return str(amount)


def test_a_preview_is_no_tool_of_the_package() -> None:
    def show(amount: int) -> str:
        return f"pays {amount}"

    @tool(preview=show, needs_approval=True)
    def pay(amount: int) -> str:
        """Pay."""
        return str(amount)

    assert pay.preview is not None
    assert (pay.preview.effect, pay.preview.needs_approval) == ("read", False)


def test_the_hash_of_a_preview_is_that_of_its_text() -> None:
    assert preview_hash({"a": 1}) == preview_hash('{"a": 1}')
    assert preview_hash("a") != preview_hash("b")
