"""The one function that makes foreign text safe for a terminal."""

from __future__ import annotations

import unicodedata

# Why: these are drawn as nothing or change the order of what is drawn, so a person could
# approve something other than what they saw. Cf is Unicode's "format" class: zero-width
# marks, bidi controls, tags, soft hyphen; Zl and Zp are separators that terminals may break on.
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_JOINER = "\u200d"
# Blank letters and fillers that are not in a format class but are drawn as nothing.
_BLANK = frozenset("\u115f\u1160\u17b4\u17b5\u3164\uffa0\u2800")
_VARIATION = frozenset(map(chr, range(0xFE00, 0xFE10)))


def visible(text: str, *, keep_newlines: bool = True) -> str:
    """Return `text` with every control, bidi, zero-width and blank mark written as `\\xNN` or `\\u{NN}`.

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
        elif char == _JOINER and _joins_symbols(text, i):
            out.append(char)
        elif char in _VARIATION and i > 0 and unicodedata.category(text[i - 1]) in ("So", "Sm"):
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
    return line if len(line) <= width else line[: max(width - 1, 0)] + "…"


def _joins_symbols(text: str, i: int) -> bool:
    def is_symbol(char: str) -> bool:
        return unicodedata.category(char) in ("So", "Sk") or char in _VARIATION

    return 0 < i < len(text) - 1 and is_symbol(text[i - 1]) and is_symbol(text[i + 1])
