"""What the composer offers while one types: commands after a slash, files after an @."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from capuchin_yaml.tui.model.search import Choosable

MAX_FILE_BYTES = 128 * 1024
_LIMIT = 50


@dataclass(frozen=True, slots=True)
class Word:
    """The word at the cursor that asks for suggestions."""

    kind: str
    """`/` or `@`."""
    text: str
    """What was typed after it."""
    start: int
    """Column of the sign in its line."""


def word_at(line: str, column: int, is_first_line: bool) -> Word | None:
    """The word before the cursor that begins with a slash at the very start, or with an @."""
    before = line[:column]
    if is_first_line and before.startswith("/") and " " not in before:
        return Word("/", before[1:], 0)
    start = before.rfind("@")
    if start < 0 or (start and not before[start - 1].isspace()) or " " in before[start:]:
        return None
    return Word("@", before[start + 1 :], start)


def matching(typed: str, names: Iterable[Choosable]) -> list[Choosable]:
    """The commands whose name begins with what was typed."""
    return [c for c in names if c.name.startswith(typed.lower())][:_LIMIT]


def files(typed: str, base: Path) -> list[Choosable]:
    """Files and folders under `base` that begin with what was typed; hidden ones when asked for."""
    folder, _, prefix = typed.rpartition("/")
    place = (base / folder) if folder else base
    try:
        found = sorted(os.scandir(place), key=lambda e: (not e.is_dir(), e.name.lower()))
    except OSError:
        return []
    out: list[Choosable] = []
    for entry in found:
        if not entry.name.lower().startswith(prefix.lower()):
            continue
        if entry.name.startswith(".") and not prefix.startswith("."):
            continue
        path = f"{folder}/{entry.name}" if folder else entry.name
        is_folder = entry.is_dir()
        out.append(Choosable(f"{path}/" if is_folder else path, f"{path}{'/' * is_folder}"))
        if len(out) >= _LIMIT:
            break
    return out


def file_text(path: str, base: Path) -> str:
    """A file as a part of a message: its name and its text in a fence.

    Raises:
        ValueError: it cannot be sent, and why.
    """
    try:
        data = (base / path).read_bytes()
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from error
    if len(data) > MAX_FILE_BYTES:
        size = len(data) // 1024
        raise ValueError(f"{path} has {size:,} KB; at most {MAX_FILE_BYTES // 1024} KB go along")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is no UTF-8 text") from error
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{path}:\n{fence}\n{text.rstrip()}\n{fence}\n"
