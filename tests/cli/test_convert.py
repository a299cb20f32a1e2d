"""`capuchin convert`: the new file on stdout or disk, the report on stderr."""

from __future__ import annotations

import os
from pathlib import Path

from capuchin_yaml.cli.convert import KINDS
from capuchin_yaml.compiler.convert import conversion
from tests.cli.program import run

TEAM = """\
agents:
  root:
    model: anthropic/claude-opus-4-8
    instruction: Help.
    add_date: true
    toolsets: [{type: shell}]
"""


def test_the_kinds_are_those_of_the_converter() -> None:
    assert KINDS == conversion.KINDS


def test_the_new_file_goes_to_stdout_and_the_report_to_stderr(tmp_path: Path) -> None:
    (tmp_path / "team.yaml").write_text(TEAM)

    ran = run("convert", "team.yaml", cwd=tmp_path)

    assert ran.code == 0
    assert ran.out.startswith(
        "# Converted from docker-agent.\napiVersion: capuchin/v1\nname: team\n"
    )
    assert ran.err == (
        "converted team.yaml (docker-agent)\n"
        "lost:\n"
        "  line 5: agents.root.add_date: the model is not told the date; "
        "the tool clock.now of capuchin-clock tells it\n"
        "  line 6: agents.root.toolsets[0]: no package here is known to be the same as 'shell'\n"
        "fill in:\n"
        "  line 6: tools: a package with tools in the place of 'shell'\n"
    )


def test_a_file_is_written_once_and_validates(tmp_path: Path) -> None:
    (tmp_path / "team.yaml").write_text(TEAM)

    first = run("convert", "team.yaml", "-o", "agent.yaml", cwd=tmp_path)
    written = (tmp_path / "agent.yaml").read_text()
    second = run("convert", "team.yaml", "-o", "agent.yaml", cwd=tmp_path)

    assert (first.code, first.out) == (0, "")
    assert run("validate", "agent.yaml", cwd=tmp_path).code == 0
    assert second.code == 1
    assert second.err == "error: agent.yaml is there already; nothing was written\n"
    assert (tmp_path / "agent.yaml").read_text() == written


def test_json_holds_the_file_and_the_report(tmp_path: Path) -> None:
    (tmp_path / "team.yaml").write_text(TEAM)

    found = run("convert", "team.yaml", "--json", cwd=tmp_path).json

    assert (found["v"], found["kind"], found["name"]) == (1, "docker-agent", "team")
    assert found["agent"].endswith("approval: all\n")
    assert [one["line"] for one in found["lost"]] == [5, 6]
    assert [one["key"] for one in found["fill_in"]] == ["tools"]
    assert found["diagnostics"] == []


def test_a_new_file_with_mistakes_says_so(tmp_path: Path) -> None:
    (tmp_path / "long.yaml").write_text(f"system: {'x' * 200_001}\n")

    ran = run("convert", "long.yaml", cwd=tmp_path)

    assert ran.code == 1
    assert "error[too-long]: prompt has 200001 characters" in ran.err
    assert "the new file has mistakes" in ran.err


def test_a_file_that_cannot_be_converted_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text("some: thing\n")
    (tmp_path / "broken.yaml").write_text("agents: [\n")

    other = run("convert", "other.yaml", cwd=tmp_path)
    broken = run("convert", "broken.yaml", cwd=tmp_path)
    missing = run("convert", "missing.yaml", cwd=tmp_path)

    assert (other.code, broken.code, missing.code) == (1, 1, 1)
    assert "say which with --from: docker-agent, pydantic-ai, claude-code, llm" in other.err
    assert "error[unclosed-bracket]" in broken.err
    assert missing.err == "error: cannot read missing.yaml: No such file or directory\n"


def test_hostile_text_of_the_old_file_is_printed_visibly(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text('agents: {root: {instruction: "\\e[2J", "\\e]0;x": 1}}\n')

    ran = run("convert", "a.yaml", cwd=tmp_path)

    assert "\x1b" not in ran.out + ran.err


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")

    ran = run("convert", "pipe.yaml", cwd=tmp_path)

    assert (ran.code, ran.err) == (1, "error: cannot read pipe.yaml: it is no plain file\n")
