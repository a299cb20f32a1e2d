"""The one function that makes foreign text safe for a terminal."""

from __future__ import annotations

import re
import unicodedata

# Why: these are drawn as nothing or change the order of what is drawn, so a person could
# approve something other than what they saw. Cf is Unicode's "format" class: zero-width
# marks, bidi controls, tags, soft hyphen; Zl and Zp are separators that terminals may break on.
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_JOINER = "\u200d"
# Letters, marks and fillers that are not in a format class but are drawn as nothing.
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0\u2800")
_TEXT_OR_EMOJI = "\ufe0e\ufe0f"
_KEYCAP = "\u20e3"
_EMOJI = re.compile("[\u2190-\u21ff\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff]")
_VARIATION = frozenset(map(chr, range(0xFE00, 0xFE10)))


def visible(text: str, *, keep_newlines: bool = True) -> str:
    """Return `text` with control, bidi, zero-width and blank marks as `\\xNN` or `\\u{NN}`.

    Newlines stay (unless `keep_newlines` is false), a carriage return before a newline is
    dropped, tabs become `\\t`. A zero-width joiner stays between two symbols, where it forms
    an emoji. The result is fit for stdout, stderr, logs and widgets without markup.
    """
    if text.isascii() and text.isprintable():
        return text
    out: list[str] = []
    last = len(text) - 1
    for i, char in enumerate(text):
        if char == "\n":
            out.append("\n" if keep_newlines else "\\n")
        elif char == "\r" and i < last and text[i + 1] == "\n":
            continue
        elif char == "\t":
            out.append("\\t")
        elif _joins_symbols(text, i) or _varies_symbol(text, i):
            out.append(char)
        elif (
            unicodedata.category(char) in _HIDDEN_CATEGORIES
            or char in _BLANK
            or char in _VARIATION
            or 0xE0100 <= ord(char) <= 0xE01EF
        ):
            out.append(f"\\x{ord(char):02x}" if ord(char) < 0x100 else f"\\u{{{ord(char):x}}}")
        else:
            out.append(char)
    return "".join(out)


def one_line(text: str, width: int) -> str:
    """Return `visible` text on one line, cut to `width` code points with a visible mark."""
    line = " ".join(visible(text, keep_newlines=True).split())
    if len(line) <= width:
        return line
    if width <= 0:
        return ""
    # Why: a joiner or variation mark at the cut has lost the symbol that made it harmless.
    return line[: width - 1].rstrip(_JOINER + "".join(_VARIATION)) + "…"


def _varies_symbol(text: str, i: int) -> bool:
    """Whether this mark chooses the text or emoji form of the symbol in front of it."""
    if text[i] not in _TEXT_OR_EMOJI or i == 0:
        return False
    before = text[i - 1]
    is_symbol = ord(before) >= 0xA9 and unicodedata.category(before) in ("So", "Sm")
    return is_symbol or (before in "0123456789#*" and text[i + 1 : i + 2] == _KEYCAP)


def _joins_symbols(text: str, i: int) -> bool:
    """Whether this joiner makes one emoji of those around it."""
    if text[i] != _JOINER or not 0 < i < len(text) - 1:
        return False
    return (_is_emoji(text[i - 1]) or _varies_symbol(text, i - 1)) and _is_emoji(text[i + 1])


def _is_emoji(char: str) -> bool:
    return bool(_EMOJI.match(char)) and unicodedata.category(char) in ("So", "Sm", "Sk")
