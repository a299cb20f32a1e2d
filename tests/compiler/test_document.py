"""YAML becomes plain values, each with its place, and never anything else."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from capuchin_yaml.compiler.document import Document, Node, read_document
from capuchin_yaml.diagnostics import Span
from capuchin_yaml.spec import JsonValue, canonical_json


def read(text: str | bytes) -> Document:
    return read_document("a.yaml", text.encode() if isinstance(text, str) else text)


def value(text: str) -> JsonValue:
    document = read(text)
    assert document.diagnostics == ()
    assert document.root is not None
    return document.root.value


def place(span: Span) -> tuple[int, int, int, int]:
    return span.line, span.column, span.end_line, span.end_column


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("no", "no"),
        ("Yes", "Yes"),
        ("on", "on"),
        ("off", "off"),
        ("y", "y"),
        ("true", True),
        ("False", False),
        ("~", None),
        ("null", None),
        ("12", 12),
        ("007", 7),
        ("-3", -3),
        ("0o17", 15),
        ("0x1F", 31),
        ("1_000", "1_000"),
        ("0b11", "0b11"),
        ("12:30", "12:30"),
        ("1:2:3.5", "1:2:3.5"),
        ("1.5", 1.5),
        (".5", 0.5),
        ("5.", 5.0),
        ("1e-3", 0.001),
        ("3E6", 3e6),
        ("1e999", "1e999"),
        (".inf", ".inf"),
        (".nan", ".nan"),
        ("2024-01-01", "2024-01-01"),
        ("2024-01-01T10:00:00Z", "2024-01-01T10:00:00Z"),
        ("=", "="),
        ("<<", "<<"),
        ("a#b", "a#b"),
        ("'12'", "12"),
        ('"true"', "true"),
        ("9" * 5000, "9" * 5000),
    ],
)
def test_a_scalar_means_what_yaml_1_2_says(written: str, meant: JsonValue) -> None:
    found = value(f"k: {written}\n")["k"]

    assert found == meant
    assert type(found) is type(meant)


@pytest.mark.parametrize("key", ["no", "12", "12:30", "2024-01-01", "true", "1.5", "'a b'"])
def test_a_key_is_the_text_that_is_written(key: str) -> None:
    assert list(value(f"{key}: 1\n")) == [key.strip("'")]


def test_keys_and_values_know_their_place_in_code_points() -> None:
    document = read('é漢👋: "x y"\nlist:\n  - 漢: [1, 22]\n')

    assert place(document.key_span(("é漢👋",))) == (1, 1, 1, 4)
    assert place(document.value_span(("é漢👋",))) == (1, 6, 1, 11)
    assert place(document.key_span(("list", 0, "漢"))) == (3, 5, 3, 6)
    assert place(document.value_span(("list", 0, "漢", 1))) == (3, 12, 3, 14)
    assert place(document.value_span(("list",))) == (3, 3, 3, 15)


def test_a_block_ends_with_its_last_value() -> None:
    document = read("a: |\n  x\n\n\nb:\n  c: 1\n\n\n# end\n")

    assert place(document.value_span(("a",))) == (1, 4, 2, 4)
    assert place(document.value_span(("b",))) == (6, 3, 6, 7)


def test_a_path_that_is_not_there_has_the_place_of_what_is_around_it() -> None:
    document = read("a: {b: 1}\n")

    assert place(document.value_span(("a", "x", 3))) == (1, 4, 1, 10)
    assert document.node(("a", "x")) is None


@pytest.mark.parametrize("line_break", ["\n", "\r\n", "\r"])
def test_line_breaks_of_every_kind_give_one_result(line_break: str) -> None:
    text = "a: 1\nb: |\n  x\n  y\nc: [1,\n  2]\n".replace("\n", line_break)

    assert value(text) == {"a": 1, "b": "x\ny\n", "c": [1, 2]}
    assert read(text).key_span(("c",)).line == 5


def test_a_byte_order_mark_is_not_part_of_the_first_key() -> None:
    document = read(b"\xef\xbb\xbfa: 1\n")

    assert document.root is not None
    assert document.root.value == {"a": 1}
    assert place(document.key_span(("a",))) == (1, 1, 1, 2)


def test_a_key_of_the_map_wins_over_a_merged_one_and_an_earlier_merge_over_a_later() -> None:
    text = "x: &x {a: 1, b: 2}\ny: &y {b: 3, c: 4}\nz:\n  a: 9\n  <<: [*x, *y]\n"

    assert value(text)["z"] == {"a": 9, "b": 2, "c": 4}


def test_a_quoted_merge_key_is_an_ordinary_key() -> None:
    assert value('a: {"<<": 1}\n') == {"a": {"<<": 1}}


def test_a_second_use_of_an_anchor_name_stands_for_the_later_value() -> None:
    assert value("a: &n 1\nb: *n\nc: &n 2\nd: *n\n") == {"a": 1, "b": 1, "c": 2, "d": 2}


def test_an_alias_bomb_is_refused_before_it_takes_memory() -> None:
    lines = ["x0: &x0 [1,1,1,1,1,1,1,1,1,1]\n"]
    lines += [f"x{i}: &x{i} [{','.join([f'*x{i - 1}'] * 10)}]\n" for i in range(1, 30)]
    tracemalloc.start()
    found = read("".join(lines)).diagnostics
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert [d.id for d in found] == ["alias-bomb"]
    assert peak_bytes < 5_000_000


def test_a_merge_bomb_is_refused() -> None:
    lines = ["m0: &m0 {a: {b: 1}}\n"]
    lines += [
        f"m{i}: &m{i}\n  k{i}: *m{i - 1}\n  <<: [*m{i - 1}, {{z: *m{i - 1}}}]\n"
        for i in range(1, 40)
    ]

    assert [d.id for d in read("".join(lines)).diagnostics] == ["alias-bomb"]


@pytest.mark.parametrize("opening", ["[", "[\n", "{a: ", "{a:\n", "- ", "? "])
def test_nesting_without_end_is_refused(opening: str) -> None:
    document = read(opening * 20_000)

    assert document.root is None
    assert len(document.diagnostics) == 1


def test_maps_nested_too_deep_are_reported_as_such() -> None:
    document = read("".join(" " * i + "a:\n" for i in range(300)))

    assert [d.id for d in document.diagnostics] == ["too-deep"]


def test_a_file_that_is_too_large_is_refused_unread() -> None:
    assert [d.id for d in read(b"a" * 8_000_001).diagnostics] == ["too-large"]


def test_a_file_with_too_many_values_is_refused() -> None:
    assert [d.id for d in read("- 1\n" * 200_001).diagnostics] == ["too-large"]


def test_a_file_of_another_kind_gives_a_handful_of_reports() -> None:
    document = read(bytes(range(128, 256)) * 100 + b"\n" + bytes(range(32)) * 1000)

    assert document.root is None
    assert 0 < len(document.diagnostics) <= 20


def test_nothing_of_a_tag_is_carried_out() -> None:
    document = read("a: !!python/object/apply:builtins.print [pwned]\nb: !!int 3\n")

    assert [d.id for d in document.diagnostics] == ["tag", "tag"]
    assert document.root is not None
    assert document.root.value == {"a": ["pwned"], "b": "3"}


YAMLISH = st.text(
    st.sampled_from(list("abc:-?[]{},&*!|>'\"%@`#~<=. \t\n\r0123456789é漢\u2028\x00\x85{}")),
    max_size=60,
)
LINES = st.lists(
    st.sampled_from(
        [
            "a: 1",
            "  b: x",
            "- c",
            "  - &x d",
            "e: *x",
            "<<: *x",
            "k: |",
            "  text {{ y }}",
            "k: >-",
            "\"q\": 'r'",
            "{a: [b, {c: d}]}",
            "? [k]",
            ": v",
            "---",
            "...",
            "# c",
            "\tx: 1",
            "z: !t u",
            "w: {{ x }}",
        ]
    ),
    max_size=12,
).map("\n".join)


def _check_inside(document: Document) -> None:
    source = document.source

    def inside(span: Span) -> bool:
        start, end = (span.line, span.column), (span.end_line, span.end_column)
        return (
            (1, 1) <= start <= end
            and span.end_line <= source.line_count
            and span.column <= len(source.line(span.line)) + 1
            and span.end_column <= len(source.line(span.end_line)) + 1
        )

    def walk(node: Node) -> None:
        assert inside(node.span), node
        for entry in node.entries.values():
            assert inside(entry.key), entry
            walk(entry.node)
        for item in node.items:
            walk(item)

    for diagnostic in document.diagnostics:
        assert inside(diagnostic.span), diagnostic
        assert all(inside(a.span) for a in diagnostic.annotations), diagnostic
    if document.root is not None:
        walk(document.root)
        canonical_json(document.root.value)


@settings(max_examples=300, deadline=None)
@given(st.one_of(YAMLISH, LINES, st.text(max_size=40)))
@example("a: &a [*a]\n")
@example("\ufeff\ufeffa: 1")
@example("'")
@example("a: |9\n x")
@example("%YAML 9.9\n---\n")
@example("- !<tag:x>\n- ! y\n")
def test_any_text_gives_values_or_diagnostics_with_places_inside_it(text: str) -> None:
    document = read(text.encode("utf-8", "surrogatepass"))

    assert document.root is not None or document.diagnostics
    _check_inside(document)


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_give_values_or_diagnostics_with_places_inside_them(data: bytes) -> None:
    _check_inside(read(data))


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.text('ab\té"\\:#{}漢 \n', max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text("abé :", max_size=4), inner)
    ),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.text("abc", min_size=1, max_size=4), JSON, min_size=1))
def test_json_is_read_as_itself(data: dict[str, JsonValue]) -> None:
    assert value(canonical_json(data)) == data
