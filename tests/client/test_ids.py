"""Ids that people read, type and shorten."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capuchin_yaml.client.ids import (
    ALPHABET,
    agent_of,
    full_id,
    is_address,
    is_whole,
    new_conversation_id,
    new_request_id,
    short_id,
)

slugs = st.from_regex(r"[a-z][a-z0-9]{0,8}(-[a-z0-9]{1,8}){0,2}", fullmatch=True)


@given(slugs, slugs)
def test_an_id_carries_project_and_agent(project: str, agent: str) -> None:
    conversation = new_conversation_id(project, agent)

    assert conversation.startswith(f"{project}.{agent}-")
    assert agent_of(project, conversation) == agent


@given(slugs, slugs)
def test_the_short_form_leads_back_to_the_whole(project: str, agent: str) -> None:
    conversation = new_conversation_id(project, agent)

    short = short_id(project, conversation)

    assert short == conversation[len(project) + 1 :]
    assert full_id(project, short) == conversation
    assert full_id(project, conversation) == conversation


def test_the_suffix_has_no_letters_that_are_misread() -> None:
    assert len(set(ALPHABET)) == 32
    assert not set("ilou") & set(ALPHABET)


def test_ids_differ() -> None:
    assert len({new_conversation_id("shop", "billing") for _ in range(1000)}) > 990
    assert len({new_request_id("m") for _ in range(1000)}) == 1000


def test_a_whole_id_is_told_from_a_beginning() -> None:
    assert is_whole(new_conversation_id("shop", "billing"))
    assert not is_whole("shop.billing")
    assert not is_whole("shop.billing-7k")


@pytest.mark.parametrize(
    "text", ["", "a' OR 1=1", 'x"y', "a b", "\x1b[31m", "a\n", "-x", "ünï", "a/b", "x" * 201]
)
def test_what_cannot_be_an_id_is_no_address(text: str) -> None:
    assert not is_address(text)
