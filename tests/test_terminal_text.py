"""Foreign text is safe for a terminal: nothing moves the cursor, hides or turns around."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capuchin_yaml.terminal_text import one_line, visible

BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
ZERO_WIDTH = "\u00ad\u034f\u180e\u200b\u200c\u2060\u2061\u2062\u2063\u2064\ufeff"
anything = st.text(st.characters(exclude_categories=()))  # also surrogates and unassigned
nasty = st.text(
    st.sampled_from(BIDI + ZERO_WIDTH + "\x1b\x9b\x07\x00\r\n\t\u2028\u2029\u200d\ufe0f👩👧❤ab")
    | st.sampled_from("\u200d\ufe0f\ufe0e\ufe00\u20e3👩❤1^a")
)


def is_control(char: str) -> bool:
    """C0 but the newline, DEL, or C1."""
    return char != "\n" and (ord(char) < 0x20 or 0x7F <= ord(char) <= 0x9F)


@given(anything | nasty)
def test_no_control_bidi_or_invisible_mark_is_left(text: str) -> None:
    shown = visible(text)

    assert not [c for c in shown if is_control(c)]
    assert not set(shown) & set(BIDI + ZERO_WIDTH)
    assert not [
        c for c in shown if unicodedata.category(c) in ("Cf", "Cs", "Zl", "Zp") and c != "\u200d"
    ]
    shown.encode()


@given(anything | nasty)
def test_without_newlines_there_is_one_line(text: str) -> None:
    assert len(visible(text, keep_newlines=False).splitlines()) <= 1


@given(anything | nasty)
def test_showing_twice_changes_nothing(text: str) -> None:
    shown = visible(text)

    assert visible(shown) == shown


@given(anything | nasty, st.integers(0, 30))
def test_one_line_is_safe_and_never_wider(text: str, width: int) -> None:
    line = one_line(text, width)

    assert len(line) <= max(width, 0)
    assert "\n" not in line
    assert visible(line) == line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text", "plain text"),
        ("", ""),
        ("naïve 東京 עברית العربية", "naïve 東京 עברית العربية"),
        ("\x1b[2J\x1b]0;t\x07", "\\x1b[2J\\x1b]0;t\\x07"),
        ("\x9b31m", "\\x9b31m"),
        ("del\x7f", "del\\x7f"),
        ("a\r\nb", "a\nb"),
        ("safe\rEVIL", "safe\\x0dEVIL"),
        ("end\r", "end\\x0d"),
        ("a\tb", "a\\tb"),
        ("pay \u202e001", "pay \\u{202e}001"),
        ("zero\u200bwidth", "zero\\u{200b}width"),
        ("soft\u00adhyphen", "soft\\xadhyphen"),
        ("tag\U000e0041", "tag\\u{e0041}"),
        ("half\ud800", "half\\u{d800}"),
        ("filler\u3164", "filler\\u{3164}"),
        ("combining\u034fjoiner", "combining\\u{34f}joiner"),
        ("para\u2029line\u2028", "para\\u{2029}line\\u{2028}"),
        ("👩\u200d👧", "👩\u200d👧"),
        ("❤\ufe0f\u200d🔥", "❤\ufe0f\u200d🔥"),
        ("👩🏽\u200d🚀", "👩🏽\u200d🚀"),
        ("a\u200db", "a\\u{200d}b"),
        ("👩\u200d", "👩\\u{200d}"),
        ("👩\u200d\u200d\u200d👧", "👩\\u{200d}\\u{200d}\\u{200d}👧"),
        ("🙂\u200d↔\ufe0f", "🙂\u200d↔\ufe0f"),
        ("a\ufe0f\u200d👧", "a\\u{fe0f}\\u{200d}👧"),
        ("^\u200d^", "^\\u{200d}^"),
        ("│\u200d│", "│\\u{200d}│"),
        ("=\ufe0f", "=\\u{fe0f}"),
        ("☎\ufe00", "☎\\u{fe00}"),
        ("☎\ufe0e\ufe0f", "☎\ufe0e\\u{fe0f}"),
        ("a\ufe0f", "a\\u{fe0f}"),
        ("1\ufe0f\u20e3", "1\ufe0f\u20e3"),
        ("e\u0301", "e\u0301"),
    ],
)
def test_what_is_shown(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_no_single_character_slips_through() -> None:
    blank = {chr(n) for n in range(sys.maxunicode + 1) if chr(n).isspace()}
    for number in range(sys.maxunicode + 1):
        char = chr(number)
        shown = visible(char)
        if shown == char and char != "\n":
            assert unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
            assert char == " " or unicodedata.category(char) == "Zs" or char not in blank


@pytest.mark.parametrize(
    ("text", "width", "line"),
    [
        ("short", 10, "short"),
        ("exactly ten", 11, "exactly ten"),
        ("a long line of words", 7, "a long…"),
        ("two\nlines\r\nhere", 20, "two lines here"),
        ("  many   blanks ", 20, "many blanks"),
        ("abc", 1, "…"),
        ("abc", 0, ""),
    ],
)
def test_one_line_is_cut_with_a_visible_mark(text: str, width: int, line: str) -> None:
    assert one_line(text, width) == line
