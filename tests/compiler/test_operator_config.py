"""The operator's config: where it is, when it counts, and what a broken one means."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from capuchin_yaml.compiler.operator_config import (
    LiveOperatorConfig,
    operator_config_path,
    read_operator_config,
)
from capuchin_yaml.spec import RuleSpec

FLOOR = 'floor: [{tool: "*", then: deny, reason: Stop.}]\n'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "config.yaml"


def test_the_place_follows_xdg_config_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "/etc/xdg-of-ann")
    named = operator_config_path()
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")
    monkeypatch.setenv("HOME", "/home/ann")
    default = operator_config_path()

    assert named == Path("/etc/xdg-of-ann/capuchin/config.yaml")
    assert default == Path("/home/ann/.config/capuchin/config.yaml")


def test_no_file_says_nothing(path: Path) -> None:
    config = read_operator_config(path)

    assert (config.exists, config.floor.rules, config.floor.problem) == (False, (), "")


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "x-note: mine\n", "floor: []\n"])
def test_a_file_that_says_nothing_is_fine(path: Path, text: str) -> None:
    path.write_text(text)

    assert read_operator_config(path).floor.problem == ""


def test_a_floor_is_read(path: Path) -> None:
    path.write_text(FLOOR + "")

    config = read_operator_config(path)

    assert config.floor.rules == (RuleSpec("deny", "*", None, "Stop."),)
    assert config.diagnostics == ()


def test_a_file_that_others_can_write_is_not_used(path: Path) -> None:
    path.write_text(FLOOR)
    path.chmod(0o666)

    config = read_operator_config(path)

    assert config.floor.rules == ()
    assert "other users can write it" in config.floor.problem


def test_a_folder_in_its_place_is_not_used(path: Path) -> None:
    path.mkdir()

    assert "no plain file" in read_operator_config(path).floor.problem


def test_a_pipe_in_its_place_holds_nothing_up(path: Path) -> None:
    os.mkfifo(path)

    assert "no plain file" in read_operator_config(path).floor.problem


@pytest.mark.parametrize(
    ("text", "id_"),
    [
        ("floor: [", "unclosed-bracket"),
        ("flor: []", "unknown-key"),
        ("floor: [{then: allow}]", "unknown-value"),
        ("floor: [{then: deny, when: 'args.x >'}]", "rule-syntax"),
        ("floor: [{then: deny, when: 'argz.x > 5'}]", "rule-unknown-name"),
        ("floor: [{then: deny, tool: 'a b'}]", "bad-tool-name"),
        ("- floor", "wrong-type"),
    ],
)
def test_a_mistake_is_shown_and_makes_the_floor_a_problem(path: Path, text: str, id_: str) -> None:
    path.write_text(text)

    config = read_operator_config(path)

    assert id_ in [d.id for d in config.diagnostics]
    assert config.floor.problem


def test_the_rules_that_can_be_read_stay_in_force_beside_one_that_cannot(path: Path) -> None:
    path.write_text("floor:\n  - {tool: a.*, then: deny}\n  - {then: dney}\n")

    config = read_operator_config(path)

    assert config.floor.rules == (RuleSpec("deny", "a.*"),)
    assert "floor[1].then" in config.floor.problem


def test_a_change_is_seen_at_the_next_look(path: Path) -> None:
    live = LiveOperatorConfig(path)
    before = live.now().floor.rules
    path.write_text(FLOOR)
    during = live.now().floor.rules
    path.unlink()

    assert (before, len(during), live.now().floor.rules) == ((), 1, ())


def test_an_unchanged_file_is_read_once(path: Path) -> None:
    path.write_text(FLOOR)
    live = LiveOperatorConfig(path)

    assert live.now() is live.now()


PUBLIC = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"


def test_people_and_groups_are_read(path: Path) -> None:
    path.write_text(
        f"people: {{ann: {{keys: [{PUBLIC} ann@laptop]}}, bob: {{}}}}\n"
        "groups: {finance: [ann, bob], managers: []}\n"
    )

    people = read_operator_config(path).people

    assert people.keys == {"ann": (PUBLIC,)}
    assert people.members(["finance", "managers"]) == ("ann", "bob")
    assert people.unknown(["finance", "others"]) == ("others",)
    assert people.refusal("cleo", ("finance",)) == (
        "cleo is not in the group finance; who is: ann, bob"
    )


def test_hooks_and_the_gate_are_read(path: Path) -> None:
    path.write_text(
        "notify:\n"
        "  - {command: [/bin/page, -x], env: [TOKEN], on: [escalated], agents: [billing]}\n"
        "  - {webhook: 'https://hooks.example.com/x', secret: {env: HUSH}}\n"
        "  - {bell: true}\n"
        "gate: {url: 'https://policy.example.com/', timeout: 2s}\n"
    )

    config = read_operator_config(path)
    command, webhook, bell = config.hooks

    assert (command.command, command.env) == (("/bin/page", "-x"), ("TOKEN",))
    assert command.wants("escalated", "billing")
    assert not command.wants("opened", "billing")
    assert not command.wants("escalated", "other")
    assert webhook.secret is not None
    assert (webhook.secret.env, webhook.wants("opened", "any")) == ("HUSH", True)
    assert (bell.bell, bell.rings("any")) == (True, False)
    assert config.gate is not None
    assert (config.gate.timeout_s, config.gate.is_about("any")) == (2.0, True)


@pytest.mark.parametrize(
    "text",
    [
        "people: {ann: {keys: [not-a-key]}}\n",
        "people: [ann]\n",
        "groups: {finance: ann}\n",
        "groups: {'two words': [ann]}\n",
        "notify: [{command: [page]}]\n",
        "notify: [{command: 'page --now'}]\n",
        "notify: [{webhook: 'ftp://example.com/'}]\n",
        "notify: [{command: [/bin/page], webhook: 'https://example.com/'}]\n",
        "notify: [{on: [opened]}]\n",
        "notify: [{bell: true, env: [TOKEN]}]\n",
        "notify: [{command: [/bin/page], secret: {env: X}}]\n",
        "gate: {url: 'https://example.com/', secret: {}}\n",
        "gate: {url: 'https://example.com/', secret: {env: X, file: /x}}\n",
        "gate: {timeout: 5s}\n",
        "gate: {url: 'https://example.com/', timeout: 5m}\n",
        "gate: {url: 'https://example.com/', secret: hush}\n",
    ],
)
def test_a_mistake_anywhere_makes_every_call_ask_and_nobody_approve(path: Path, text: str) -> None:
    path.write_text(FLOOR + text)

    config = read_operator_config(path)

    assert config.floor.problem
    assert config.people.problem == config.floor.problem
    assert (config.hooks, config.gate) == ((), None)
    assert len(config.floor.rules) == 1


def test_a_secret_that_others_can_read_is_not_used(path: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("hush")
    secret.chmod(0o644)
    path.write_text(f"gate: {{url: 'https://example.com/', secret: {{file: {secret}}}}}\n")
    gate = read_operator_config(path).gate
    assert gate is not None
    assert gate.secret is not None

    with pytest.raises(ValueError, match="others can read it"):
        gate.secret.read()
    secret.chmod(0o600)
    assert gate.secret.read() == b"hush"
