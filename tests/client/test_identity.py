"""Names in requests are asserted, printable and never taken from the shell by accident."""

from __future__ import annotations

import os
import pwd
import socket

import pytest

from capuchin_yaml.client.identity import asserted_user, client_name
from capuchin_yaml.errors import RequestRefused


def test_without_a_claim_it_is_the_user_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USER", "mallory")
    monkeypatch.setenv("LOGNAME", "mallory")

    assert asserted_user() == pwd.getpwuid(os.geteuid()).pw_name


def test_a_claimed_name_is_taken_without_its_margins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAPUCHIN_USER", " Anna Lee ")

    assert asserted_user() == "Anna Lee"


@pytest.mark.parametrize("name", ["", "  ", "a\x1b[2Jb", "a\u202eb", "x" * 129])
def test_a_name_that_cannot_be_shown_is_refused(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("CAPUCHIN_USER", name)

    with pytest.raises(RequestRefused, match="CAPUCHIN_USER"):
        asserted_user()


def test_a_client_is_named_after_program_and_machine() -> None:
    assert client_name("cli") == f"cli@{socket.gethostname()}"
