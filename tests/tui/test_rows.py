"""Rows: widths, breaks, Markdown and exact arguments."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import split_graphemes

from capuchin_yaml.terminal_text import visible
from capuchin_yaml.tui.draw.exact import argument_rows, exact_rows, laid_out
from capuchin_yaml.tui.draw.heights import Heights
from capuchin_yaml.tui.draw.markdown import OpenMarkdown, markdown_rows
from capuchin_yaml.tui.draw.rows import Piece, cells, clip, fold, plain, spread, wrap

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
GLYPHS = ["a", "B", " ", "é", "e\u0301", "你", "好", "ｱ", "⚠\ufe0f", FAMILY, "🇩🇪", "-", "."]
WIDE = st.lists(st.sampled_from(GLYPHS), max_size=40).map("".join)
MARKDOWN = """# Head **bold**

Some `code`, *emph*, ~~gone~~ and a [link](https://example.org/a) 你好.
second line

- one
- two
  - nested
    1. deep

> quoted
> more

```python
def f():
    return 1
```

| a | b |
|---|---|
| 1 | long cell |

---
<b>raw</b> [/red] [bold

[late]: https://example.org
"""


@given(WIDE, st.integers(2, 20))
def test_wrapped_rows_fit_and_keep_every_glyph_in_order(text: str, width: int) -> None:
    rows = wrap((Piece(text),), width)

    assert all(cells(r) <= width for r in rows)
    kept = "".join(plain(r) for r in rows)
    assert kept.replace(" ", "") == text.replace(" ", "")


@given(WIDE, st.integers(2, 20))
def test_graphemes_are_never_split(text: str, width: int) -> None:
    whole = [text[a:b] for a, b, _ in split_graphemes(text)[0]]

    parts = [
        plain(r)[a:b]
        for r in fold((Piece(text),), width)
        for a, b, _ in split_graphemes(plain(r))[0]
    ]

    assert "".join(parts) == text
    assert parts == whole


@given(st.text(), st.integers(2, 30))
def test_folded_rows_keep_every_blank(text: str, width: int) -> None:
    safe = visible(text, keep_newlines=False)

    assert "".join(plain(r) for r in fold((Piece(safe),), width)) == safe


@given(WIDE, st.integers(0, 20))
def test_a_clipped_row_fits_and_shows_that_it_is_cut(text: str, width: int) -> None:
    row = clip((Piece(text),), width)

    assert cells(row) <= width
    if width and plain(row) != text:
        assert plain(row).endswith("…")


def test_a_line_with_two_ends_cuts_the_left_one() -> None:
    row = spread((Piece("a long name of something"),), (Piece("right"),), 20)

    assert plain(row) == "a long name o… right"


def test_markdown_keeps_its_structure_in_plain_rows() -> None:
    text = [plain(r) for r in markdown_rows(MARKDOWN, 60)]

    assert text == [
        "# Head bold",
        "",
        "Some code, emph, gone and a link (https://example.org/a) 你",
        "好.",
        "second line",
        "",
        "• one",
        "• two",
        "  ◦ nested",
        "    1. deep",
        "",
        "▌ quoted",
        "▌ more",
        "",
        "│ python",
        "│ def f():",
        "│     return 1",
        "",
        "a │ b        ",
        "──┼──────────",
        "1 │ long cell",
        "",
        "────────────────────────────────────────",
        "",
        "<b>raw</b> [/red] [bold",
    ]


@pytest.mark.parametrize("width", [1, 2, 5, 12, 40, 200])
def test_markdown_fits_any_width(width: int) -> None:
    rows = markdown_rows(MARKDOWN, width)

    assert all(cells(r) <= max(width, 8) for r in rows if "│" not in plain(r) or width > 11)


def test_a_reply_cut_at_any_place_ends_as_the_whole_one() -> None:
    opened = OpenMarkdown()

    for end in range(len(MARKDOWN) + 1):
        last = opened.rows(MARKDOWN[:end], 50)

    assert last == markdown_rows(MARKDOWN, 50)


@settings(max_examples=40)
@given(st.text(st.sampled_from("ab *_`#->|[]()\n1. ~\t!<"), max_size=80), st.integers(3, 40))
def test_no_text_breaks_the_growing_reply(text: str, width: int) -> None:
    opened = OpenMarkdown()

    for end in range(0, len(text) + 1, 7):
        opened.rows(text[:end], width)

    opened.rows(text, width)


def test_a_long_reply_redraws_only_its_open_end() -> None:
    opened = OpenMarkdown()
    text = "\n\n".join(f"paragraph {n} " + "word " * 20 for n in range(200))
    opened.rows(text, 80)
    import time

    start = time.perf_counter()
    for n in range(100):
        opened.rows(text + " more" * n, 80)

    # Parsing it all would take 100 times 50 ms.
    assert time.perf_counter() - start < 2


def test_control_and_bidi_marks_of_a_model_are_written_out() -> None:
    text = "".join(plain(r) for r in markdown_rows("a\x1b[31mb\u202ec [x](http://\u202ey)", 80))

    assert "\x1b" not in text
    assert "\u202e" not in text
    assert r"\x1b[31m" in text


def test_arguments_are_laid_out_without_touching_a_token() -> None:
    canonical = '{"a":[1.0,2e400,{}],"b":"x\\"{,}:[y","c":[],"d":"\\u0041"}'

    laid = laid_out(canonical)

    assert laid.split("\n")[:3] == ["{", '  "a": [', "    1.0,"]
    assert '"x\\"{,}:[y"' in laid
    assert '"\\u0041"' in laid


@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda c: st.lists(c, max_size=4) | st.dictionaries(st.text(), c, max_size=4),
    max_leaves=12,
))  # fmt: skip
def test_laid_out_arguments_mean_the_same(value: object) -> None:
    import json

    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    assert json.loads(laid_out(text)) == value


def test_exact_text_is_all_there_with_only_the_mark_added() -> None:
    text = '{"a":"' + "x y  " * 40 + '"}'

    rows = exact_rows(text, 30)

    assert "".join(plain(r)[2:].removeprefix("↪ ") for r in rows) == text


def test_a_long_argument_line_is_marked_where_it_is_broken() -> None:
    rows = [plain(r) for r in argument_rows('{"a":"' + "y" * 30 + '"}', 24)]

    assert rows[0] == "  {"
    assert rows[2].startswith("    ↪ y")


@given(st.lists(st.integers(0, 9), max_size=40), st.data())
def test_heights_answer_like_a_plain_list(start: list[int], data: st.DataObject) -> None:
    heights, model = Heights(start), list(start)
    for _ in range(data.draw(st.integers(0, 20))):
        match data.draw(st.sampled_from(["set", "append", "pop"])):
            case "set" if model:
                i = data.draw(st.integers(0, len(model) - 1))
                model[i] = data.draw(st.integers(0, 9))
                heights.set(i, model[i])
            case "append":
                model.append(data.draw(st.integers(0, 9)))
                heights.append(model[-1])
            case "pop" if model:
                model.pop()
                heights.pop()

    assert heights.total == sum(model)
    assert [heights.top(i) for i in range(len(model))] == [
        sum(model[:i]) for i in range(len(model))
    ]
    for y in range(sum(model)):
        i = heights.at(y)
        assert sum(model[:i]) <= y < sum(model[: i + 1])
