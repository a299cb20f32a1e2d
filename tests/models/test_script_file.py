"""A script's mistakes are named by their line."""

from __future__ import annotations

from pathlib import Path

import pytest

from capuchin_yaml.errors import ModelRejected
from capuchin_yaml.models.script_file import parse_script, read_script


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "s.yaml:1: an empty script"),
        ("- 1", "s.yaml:1: a script is a mapping"),
        ("rules: []\nrule: []", "s.yaml:2: a script has no key 'rule'; did you mean 'rules'?"),
        ("rules: {}", "s.yaml:1: rules must be a list"),
        ("rules:", "s.yaml:1: rules must be a list"),
        ("rules:\n- 5", "s.yaml:2: a rule is a mapping"),
        ("rules:\n- {reply: {}}", "s.yaml:2: a rule needs `when`"),
        ("rules:\n- {when: {replies: 0}}", "s.yaml:2: a rule needs `reply`"),
        ("rules:\n- {when: {}, reply: {}}", "s.yaml:2: `when` is empty"),
        ("rules:\n- when:\n    usr: x\n  reply: {}", "s.yaml:3: `when` has no key 'usr'; did you"),
        ("rules:\n- when: {user: '('}\n  reply: {}", "s.yaml:2: user is not a regular expression"),
        ("rules:\n- when: {user: 5}\n  reply: {}", "s.yaml:2: user must be text; put it in quotes"),
        ("rules:\n- when: {status: ko}\n  reply: {}", "s.yaml:2: status must be one of: ok,"),
        ("rules:\n- when: {replies: -1}\n  reply: {}", "s.yaml:2: replies must be a whole number"),
        ("default:\n  says: x", "s.yaml:2: a reply has no key 'says'; did you mean 'say'?"),
        ("default: {say: 5}", "s.yaml:1: say must be text"),
        ("default: {say: null}", "s.yaml:1: say must be text"),
        ("default: {calls: [{args: {}}]}", "s.yaml:1: a call needs `tool`"),
        ("default: {calls: [{tool: t, arg: {}}]}", "a call has no key 'arg'; did you mean 'args'?"),
        ("default: {stop_reason: stop}", "stop_reason must be one of: end_turn,"),
        ("default: {delay_s: soon}", "delay_s must be a number"),
        ("default: {delay_s: -1}", "delay_s must not be negative"),
        ("default: {delay_s: true}", "delay_s must be a number"),
        ("default: {usage: {tokens: 1}}", "usage has no key 'tokens'"),
        ("default: {usage: {input_tokens: 1.5}}", "input_tokens must be a whole number"),
        ("default: {fail: {status: 200}}", "status must be between 400 and 599"),
        ("default: {say: a}\ndefault: {say: b}", "s.yaml:2: the key 'default' is there twice"),
        ("default: {? [a] : b}", "a key must be text"),
        ("default: {say: !!python/name:os.system x}", "the tag"),
        ("default: {say: !secret x}", "the tag '!secret' is not allowed"),
        ("default: &a {calls: [{tool: t, args: *a}]}", "endless aliases"),
        ("default: {say: 'x}", "s.yaml:1: not YAML"),
        ("default:\n\tsay: x", "s.yaml:2: not YAML"),
        ("default: {}\n---\ndefault: {}", "s.yaml:2: not YAML"),
        ("default: " + "[" * 5000, "not YAML"),
        ("default: {calls: [{tool: t, args: " + "[" * 500 + "]" * 500 + "}]}", "endless"),
    ],
)
def test_a_mistake_is_named_by_its_line(text: str, sentence: str) -> None:
    with pytest.raises(ModelRejected) as refused:
        parse_script(text, "s.yaml")

    assert sentence in str(refused.value)


def test_an_anchor_bomb_is_refused() -> None:
    bomb = "default:\n  calls:\n    - tool: t\n      args:\n        a0: &a0 [x]\n"
    bomb += "".join(
        f"        a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 9)
    )

    with pytest.raises(ModelRejected, match="too many or endless aliases"):
        parse_script(bomb, "s.yaml")


def test_scalars_mean_what_they_look_like() -> None:
    script = parse_script(
        "default: {calls: [{tool: no, args: [no, on, 12:30, 2026-01-15, 0o7, 1e3, .5, 07, 5, "
        "-1, true, null, ~, '5', 1_000, .inf, 1e999]}]}",
        "s.yaml",
    )
    assert script.default is not None
    call = script.default.calls[0]

    assert call.tool == "no"
    assert call.args == [
        *("no", "on", "12:30", "2026-01-15", "0o7"),
        *(1000.0, 0.5, 7, 5, -1, True, None, None, "5", "1_000", ".inf", "1e999"),
    ]


def test_aliases_are_followed() -> None:
    script = parse_script(
        "rules: [{when: {user: a}, reply: &r {say: x}}, {when: {user: b}, reply: *r}]", "s.yaml"
    )

    assert [r.reply.say for r in script.rules] == ["x", "x"]


def test_a_file_that_is_no_script_is_refused(tmp_path: Path) -> None:
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    huge = tmp_path / "huge.yaml"
    huge.write_bytes(b"#" * (4 * 1024 * 1024 + 1))

    for path, sentence in (
        (binary, "is not UTF-8"),
        (huge, "bytes; at most"),
        (tmp_path, "cannot read the script"),
        (tmp_path / "none.yaml", "No such file"),
    ):
        with pytest.raises(ModelRejected, match=sentence):
            read_script(path)
