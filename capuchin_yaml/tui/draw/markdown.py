"""Markdown of a model as rows: headings, lists, quotes, fences, tables, emphasis; links as text.

The text is foreign: it goes through `terminal_text.visible` first, HTML stays as it is
written, links are shown with their target and never made active.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from capuchin_yaml.terminal_text import visible
from capuchin_yaml.tui.draw.rows import Piece, Row, cells, clip, wrap

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

TAB_COLUMNS = 4
_BULLETS = "•◦▪"
_MIN_COLUMN = 3
_MAX_PARSED = 100_000
"""Longer texts are drawn as they are written: parsing costs a second per 400 KB."""


def markdown_rows(text: str, width: int) -> list[Row]:
    """The whole text as rows of at most `width` columns; blocks are apart by one empty row."""
    out: list[Row] = []
    for _, rows in blocks(text, width):
        if out:
            out.append(())
        out.extend(rows)
    return out


def blocks(text: str, width: int) -> list[tuple[int, list[Row]]]:
    """Each top-level block as (first source line, rows)."""
    safe = visible(text.expandtabs(TAB_COLUMNS))
    if len(safe) > _MAX_PARSED:
        return [(0, wrap((Piece(safe),), max(width, 1)))]
    tokens = _parser().parse(safe)
    out: list[tuple[int, list[Row]]] = []
    i = 0
    while i < len(tokens):
        end = _close(tokens, i)
        rows = _block(tokens[i : end + 1], max(width, 1))
        if rows:
            span = tokens[i].map
            line = span[0] if span else 0
            out.append((line, rows))
        i = end + 1
    return out


class OpenMarkdown:
    """The rows of a reply that is still growing: finished blocks are kept, the end is redrawn.

    What is shown while it grows may differ from the whole text's rows where a later line
    changes an earlier block (a link definition far below); the finished reply is drawn by
    `markdown_rows`, so nothing of that stays.
    """

    def __init__(self) -> None:
        self._kept: list[Row] = []
        self._kept_chars = 0
        self._kept_text = ""
        self._width = 0

    def rows(self, text: str, width: int) -> list[Row]:
        """The rows of `text`, which is what it was before with more at its end."""
        if width != self._width or not text.startswith(self._kept_text):
            self._kept, self._kept_chars, self._kept_text = [], 0, ""
            self._width = width
        tail = text[self._kept_chars :]
        parts = blocks(tail, width)
        if len(parts) > 1:
            line = parts[-1][0]
            ends = _line_start(tail, line)
            for _, rows in parts[:-1]:
                self._kept.extend([()] if self._kept else [])
                self._kept.extend(rows)
            self._kept_chars += ends
            self._kept_text = text[: self._kept_chars]
            parts = parts[-1:]
        out = list(self._kept)
        for _, rows in parts:
            out.extend([()] if out else [])
            out.extend(rows)
        return out


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])


def _line_start(text: str, line: int) -> int:
    at = 0
    for _ in range(line):
        at = text.index("\n", at) + 1
    return at


def _close(tokens: list[Token], i: int) -> int:
    """Index of the token that ends the block that begins at `i`."""
    if tokens[i].nesting != 1:
        return i
    depth = 0
    for j in range(i, len(tokens)):
        depth += tokens[j].nesting
        if depth == 0:
            return j
    return len(tokens) - 1


def _children(tokens: list[Token]) -> list[list[Token]]:
    out: list[list[Token]] = []
    i = 0
    while i < len(tokens):
        end = _close(tokens, i)
        out.append(tokens[i : end + 1])
        i = end + 1
    return out


def _block(tokens: list[Token], width: int) -> list[Row]:
    head = tokens[0]
    match head.type:
        case "paragraph_open":
            return wrap(_inline(tokens[1]), width)
        case "heading_open":
            mark = Piece("#" * int(head.tag[1:]) + " ", "heading")
            return wrap(_inline(tokens[1], "heading"), width, (mark,), (Piece(" "),))
        case "fence" | "code_block":
            return _code(head.content, head.info.split(" ")[0], width)
        case "hr":
            return [(Piece("─" * min(width, 40), "rule"),)]
        case "blockquote_open":
            bar = (Piece("▌ ", "quote"),)
            inner = _stack(_children(tokens[1:-1]), max(width - 2, 1), loose=True)
            return [(*bar, *r) for r in inner]
        case "bullet_list_open" | "ordered_list_open":
            return _list(tokens, width)
        case "table_open":
            return _table(tokens, width)
        case _:
            return wrap((Piece(head.content.rstrip("\n"), "muted"),), width) if head.content else []


def _stack(parts: list[list[Token]], width: int, *, loose: bool) -> list[Row]:
    out: list[Row] = []
    for part in parts:
        rows = _block(part, width)
        if out and loose and rows:
            out.append(())
        out.extend(rows)
    return out


def _code(text: str, language: str, width: int) -> list[Row]:
    bar = (Piece("│ ", "rule"),)
    out: list[Row] = []
    if language:
        out.append(clip((*bar, Piece(language, "muted")), width))
    out.extend(wrap((Piece(text.rstrip("\n"), "block"),), width, bar, bar))
    return out


def _list(tokens: list[Token], width: int) -> list[Row]:
    head = tokens[0]
    number = int(head.attrGet("start") or 1) if head.type == "ordered_list_open" else 0
    out: list[Row] = []
    for n, item in enumerate(_children(tokens[1:-1])):
        mark = f"{number + n}. " if number else f"{_BULLETS[(head.level // 2) % 3]} "
        parts = _children(item[1:-1])
        loose = any(p[0].type == "paragraph_open" and not p[0].hidden for p in parts)
        rows = _stack(parts, max(width - cells((Piece(mark),)), 1), loose=loose) or [()]
        if out and loose:
            out.append(())
        lead = Piece(" " * len(mark))
        out.extend((Piece(mark, "muted"), *r) if i == 0 else (lead, *r) for i, r in enumerate(rows))
    return out


def _table(tokens: list[Token], width: int) -> list[Row]:
    table: list[list[list[Piece]]] = []
    header_rows = 0
    for i, token in enumerate(tokens):
        if token.type == "tr_open":
            table.append([])
        elif token.type in ("th_open", "td_open"):
            role = "strong" if token.type == "th_open" else "text"
            table[-1].append(_inline(tokens[i + 1], role))
        elif token.type == "thead_close":
            header_rows = len(table)
    columns = max((len(r) for r in table), default=0)
    wants = [max(cells(r[c]) if c < len(r) else 0 for r in table) for c in range(columns)]
    room = width - 3 * (columns - 1)
    if room < columns * _MIN_COLUMN:
        return wrap((Piece(tokens[0].content or _flat(table)),), width)
    sizes = _fit(wants, room)
    gap = Piece(" │ ", "rule")
    out: list[Row] = []
    for n, line in enumerate(table):
        if n == header_rows and header_rows:
            out.append((Piece("─┼─".join("─" * s for s in sizes), "rule"),))
        parts = [wrap(line[c] if c < len(line) else (), sizes[c]) for c in range(columns)]
        for k in range(max(map(len, parts))):
            pieces: list[Piece] = []
            for c in range(columns):
                cell = parts[c][k] if k < len(parts[c]) else ()
                pieces.extend([gap] if c else [])
                pieces.extend((*cell, Piece(" " * (sizes[c] - cells(cell)))))
            out.append(tuple(pieces))
    return out


def _flat(table: list[list[list[Piece]]]) -> str:
    return "\n".join(" | ".join("".join(p.text for p in c) for c in line) for line in table)


def _fit(wants: list[int], room: int) -> list[int]:
    """Column widths that fill at most `room`, taking from the widest first."""
    sizes = [max(w, 1) for w in wants]
    while sum(sizes) > room:
        widest = max(range(len(sizes)), key=sizes.__getitem__)
        sizes[widest] -= 1
    return sizes


def _inline(token: Token, role: str = "text") -> list[Piece]:
    out: list[Piece] = []
    roles = [role]
    links: list[tuple[str, int]] = []
    for child in token.children or []:
        match child.type:
            case "softbreak" | "hardbreak":
                out.append(Piece("\n", role))
            case "code_inline":
                out.append(Piece(child.content, "code"))
            case "strong_open":
                roles.append("strong")
            case "em_open":
                roles.append("emph")
            case "s_open":
                roles.append("strike")
            case "strong_close" | "em_close" | "s_close":
                roles.pop()
            case "link_open":
                links.append((str(child.attrGet("href") or ""), len(out)))
                roles.append("link")
            case "link_close":
                roles.pop()
                href, start = links.pop()
                if href and "".join(p.text for p in out[start:]) != href:
                    out.append(Piece(f" ({visible(href)})", "muted"))
            case "image":
                source = visible(str(child.attrGet("src") or ""))
                out.append(Piece(f"[image: {child.content}] ({source})", "muted"))
            case _:
                out.append(Piece(child.content, roles[-1]))
    return [p for p in out if p.text]
