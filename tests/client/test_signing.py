"""The client signs decisions with a key file, or with one that ssh-agent holds."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from capuchin_yaml.client.signing import signature, signing_key
from capuchin_yaml.engine.people import unproven
from capuchin_yaml.errors import RequestRefused
from tests.engine.operator_file import make_key


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An ssh-agent of the test's own."""
    said = subprocess.run(["ssh-agent", "-s"], capture_output=True, text=True, check=True).stdout
    found = dict(re.findall(r"(SSH_\w+)=([^;]+);", said))
    monkeypatch.setenv("SSH_AUTH_SOCK", found["SSH_AUTH_SOCK"])
    yield
    os.kill(int(found["SSH_AGENT_PID"]), signal.SIGTERM)


def public(line: str) -> list[str]:
    return [" ".join(line.split()[:2])]


async def test_a_key_file_signs(tmp_path: Path) -> None:
    key, line = make_key(tmp_path, "ann")
    made = await signature("what I say: é", key)

    assert unproven("what I say: é", made, public(line), "ann") == ""
    assert "not ann's" in unproven("what I say: e", made, public(line), "ann")


def in_agent(key: Path) -> None:
    """Hand a key to the agent, and take its file away."""
    subprocess.run(["ssh-add", "-q", str(key)], check=True)
    key.unlink()


async def test_a_key_in_the_agent_signs_by_its_public_file(tmp_path: Path, agent: None) -> None:
    key, line = make_key(tmp_path, "ann")
    in_agent(key)
    made = await signature("text", key.with_suffix(".pub"))

    assert unproven("text", made, public(line), "ann") == ""


async def test_a_key_with_a_passphrase_fails_and_never_asks(tmp_path: Path) -> None:
    key, _ = make_key(tmp_path, "ann", passphrase="secret words")

    with pytest.raises(RequestRefused, match="must be in ssh-agent"):
        await signature("text", key)


def test_a_key_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CAPUCHIN_SIGNING_KEY", str(tmp_path / "none"))

    with pytest.raises(RequestRefused, match="which is no file"):
        signing_key()


def test_without_the_variable_nothing_is_signed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CAPUCHIN_SIGNING_KEY", raising=False)

    assert signing_key() is None
