"""A secret leaves the worker in no form that anybody could read it from."""

from __future__ import annotations

import base64
import html
import itertools
import json
import logging
import urllib.parse
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capuchin_yaml.engine.scrub import Scrubber

KEY = "sk-test-0123/+ä\"\\&'k ey"
FORMS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "json": lambda s: json.dumps(s)[1:-1],
    "json in json": lambda s: json.dumps(json.dumps({"key": s})),
    "json, not ascii": lambda s: json.dumps(s, ensure_ascii=False)[1:-1],
    "json for script tags": lambda s: json.dumps(s)[1:-1].replace("/", "\\/"),
    "repr": lambda s: repr(s)[1:-1],
    "repr of bytes": lambda s: repr(s.encode())[2:-1],
    "url": lambda s: urllib.parse.quote(s, safe=""),
    "url path": urllib.parse.quote,
    "form": urllib.parse.quote_plus,
    "url twice": lambda s: urllib.parse.quote(urllib.parse.quote(s, safe=""), safe=""),
    "every byte": lambda s: "".join(f"%{b:02x}" for b in s.encode()),
    "html": html.escape,
    "hex": lambda s: s.encode().hex(),
    "hex, upper case": lambda s: s.encode().hex().upper(),
    "hex with colons": lambda s: s.encode().hex(":"),
}


def base64_of(text: str, before: int, *, url: bool = False) -> str:
    encode = base64.urlsafe_b64encode if url else base64.b64encode
    return encode(b"u:p"[:before] + text.encode() + b"!").decode()


def scrubber(*values: str) -> Scrubber:
    made = Scrubber()
    for i, value in enumerate(values):
        made.add(f"KEY_{i}", value)
    return made


@pytest.mark.parametrize("form", FORMS)
def test_a_secret_is_found_in_each_form(form: str) -> None:
    shown = scrubber(KEY).scrub(f"before {FORMS[form](KEY)} after")

    assert "[secret KEY_0]" in shown
    assert shown.startswith("before ")
    assert shown.endswith(" after")
    assert "0123" not in shown
    assert "30313233" not in shown


@pytest.mark.parametrize("before", [0, 1, 2])
@pytest.mark.parametrize("url", [False, True])
def test_base64_is_found_at_each_alignment(before: int, url: bool) -> None:
    secret = "sk-test-0123?>~>~>"
    shown = scrubber(secret).scrub(f"Basic {base64_of(secret, before, url=url)}.")

    assert "[secret KEY_0]" in shown
    assert len(shown) < len("Basic [secret KEY_0].") + 10


def test_base64_in_lines_is_found() -> None:
    secret = "sk-" + "0123456789" * 12
    wrapped = base64.encodebytes(b"x" + secret.encode()).decode()

    assert scrubber(secret).scrub(wrapped).count("\n") == 1


_secrets = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters=" \t\r\n\x85\u2028\u2029\x0b\x0c"),
    min_size=6,
    max_size=40,
).filter(lambda s: s.strip() == s and "[secret" not in s and s not in "[secret KEY_0]")
_alphabet = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@settings(deadline=None)
@given(secret=_secrets, form=st.sampled_from(sorted(FORMS)), before=_alphabet, after=_alphabet)
def test_no_form_of_any_secret_is_left(secret: str, form: str, before: str, after: str) -> None:
    shown = scrubber(secret).scrub(before + FORMS[form](secret) + after)

    assert "[secret KEY_0]" in shown
    assert secret not in shown.replace("[secret KEY_0]", "\0")


@settings(deadline=None)
@given(
    secret=_secrets,
    form=st.sampled_from(sorted(FORMS)),
    before=_alphabet,
    after=_alphabet,
    cuts=st.lists(st.integers(0, 400), max_size=8),
)
def test_chunks_of_a_stream_hide_nothing(
    secret: str, form: str, before: str, after: str, cuts: list[int]
) -> None:
    text = before + FORMS[form](secret) + after
    stream = scrubber(secret).stream()
    places = sorted({min(cut, len(text)) for cut in cuts} | {0, len(text)})
    pieces = [stream.feed(text[a:b]) for a, b in itertools.pairwise(places)]
    shown = "".join([*pieces, stream.end()])

    assert "[secret KEY_0]" in shown
    assert shown == scrubber(secret).scrub(text)


@settings(deadline=None)
@given(text=st.text(), cuts=st.lists(st.integers(0, 100), max_size=5))
def test_a_text_without_secrets_is_left_as_it_is(text: str, cuts: list[int]) -> None:
    made = scrubber("sk-a-secret-that-no-text-has")
    stream = made.stream()
    places = sorted({min(cut, len(text)) for cut in cuts} | {0, len(text)})
    pieces = [stream.feed(text[a:b]) for a, b in itertools.pairwise(places)]

    assert made.scrub(text) == text
    assert "".join([*pieces, stream.end()]) == text


def test_what_may_become_a_secret_waits_for_the_next_chunk() -> None:
    stream = scrubber("sk-test-0123").stream()

    assert stream.feed("the key is sk-te") == "the key is "
    assert stream.feed("st-0123 and") == "[secret KEY_0] and"
    assert stream.feed(" not sk-test") == " not "
    assert stream.feed("ing") == "sk-testing"
    assert stream.end() == ""


def test_of_two_secrets_that_begin_alike_the_longer_one_goes_whole() -> None:
    made = scrubber("sk-test", "sk-test-0123")
    stream = made.stream()

    assert made.scrub("sk-test-0123 sk-test") == "[secret KEY_1] [secret KEY_0]"
    assert stream.feed("sk-test") + stream.feed("-01") + stream.feed("23.") == "[secret KEY_1]."


def test_a_long_text_is_scrubbed_across_its_pieces() -> None:
    made = scrubber("sk-test-0123")
    text = "x" * (64 * 1024 - 5) + "sk-test-0123" + "y" * 200_000 + "sk-test-0123"
    shown = made.scrub(text)

    assert shown.count("[secret KEY_0]") == 2
    assert "0123" not in shown


def test_bytes_of_any_kind_are_scrubbed_and_else_unchanged() -> None:
    made = scrubber("sk-test-0123")
    noise = bytes(range(256))

    assert made.scrub_bytes(noise + b"sk-test-0123" + noise) == noise + b"[secret KEY_0]" + noise


def test_a_binary_secret_is_found_in_its_written_forms() -> None:
    key = bytes(range(200, 232))
    made = Scrubber()
    made.add("the project key", key)

    for written in (key.hex(), base64.b64encode(b"z" + key).decode(), key.hex(" ").upper()):
        assert "[secret the project key]" in made.scrub(written)


def test_the_lines_of_a_secret_of_several_lines_are_secrets_too() -> None:
    made = scrubber("-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0\n-----END KEY-----\n")

    assert made.scrub("  MIIEvQIBADANBgkqhkiG9w0") == "  [secret KEY_0]"


def test_structured_data_is_scrubbed_in_keys_and_values() -> None:
    made = scrubber("sk-test-0123", "1234567")

    assert made.scrub_json(
        {"a": ["sk-test-0123", {"sk-test-0123": 1}], "n": 1234567, "ok": True}
    ) == {
        "a": ["[secret KEY_0]", {"[secret KEY_0]": 1}],
        "n": "[secret KEY_1]",
        "ok": True,
    }


def test_untouched_data_comes_back_as_it_was() -> None:
    value = {"a": [1, 2.5, None, {"b": "c"}]}

    assert scrubber("sk-test-0123").scrub_json(value) is value


def test_a_password_that_is_a_word_of_the_house_does_not_break_the_house() -> None:
    made = scrubber("postgres", "sk-test-0123-4567-89ab")
    value = {"tool": "postgres_query", "input": {"tool": "postgres", "postgres": 1}}

    assert made.scrub_json(value, house=frozenset({"tool"}), foreign=frozenset({"input"})) == {
        "tool": "postgres_query",
        "input": {"tool": "[secret KEY_0]", "[secret KEY_0]": 1},
    }
    assert made.scrub_json({"tool": "sk-test-0123-4567-89ab"}, house=frozenset({"tool"})) == {
        "tool": "[secret KEY_1]"
    }


def test_a_short_secret_is_warned_about_and_left(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        made = scrubber("12345")

    assert "KEY_0 has fewer than 6 characters" in caplog.text
    assert "12345" not in caplog.text
    assert made.scrub("12345") == "12345"
