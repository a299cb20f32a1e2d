# ruff: noqa: E501
"""What a model reads of a docstring."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capuchin_yaml.tools.docstring import Docstring, read_docstring


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (None, Docstring("")),
        ("", Docstring("")),
        ("One line.", Docstring("One line.")),
        ("\n    Starts on\n    its own line.\n\n    More.\n    ", Docstring("Starts on its own line.")),
        ("Go.\n\nArgs:\n    a: First.\n    b: Second.", Docstring("Go.", {"a": "First.", "b": "Second."})),
        ("Go.\nArgs:\n    a: First.", Docstring("Go.", {"a": "First."})),
        ("Go.\n\nArgs:\n  a (int, optional): First:\n      two.\n", Docstring("Go.", {"a": "First: two."})),
        ("Go.\n\nArgs:\n    a:\n        Below.\n\n        Again.", Docstring("Go.", {"a": "Below. Again."})),
        ("Go.\n\nArgs:\n    a: One.\n        b: not a parameter", Docstring("Go.", {"a": "One. b: not a parameter"})),
        ("Go.\n\nArgs:\n    a: One.\n\nReturns:\n    b: Two.", Docstring("Go.", {"a": "One."})),
        ("Go.\n\nArgs:\n    **kw: All.", Docstring("Go.", {"kw": "All."})),
        ("Go.\n\nArgs:\n    prose without a name\n    a: One.", Docstring("Go.", {"a": "One."})),
        ("Go.\n\nArgs:\n", Docstring("Go.")),
        ("\n    Args:\n        a: One.\n    ", Docstring("", {"a": "One."})),
    ],
)  # fmt: skip
def test_what_is_read(text: str | None, read: Docstring) -> None:
    assert read_docstring(text) == read


@given(st.text(st.sampled_from("Args: ab()\n\t*#")))
def test_any_text_can_be_read(text: str) -> None:
    read = read_docstring(text)

    assert "\n" not in read.description
    assert not [v for v in read.parameters.values() if "\n" in v]
