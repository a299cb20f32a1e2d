"""`capuchin render`: the prompt as the model would read it."""

from __future__ import annotations

from tests.cli.program import Project

AGENT = """\
apiVersion: capuchin/v1
name: shop
model: {name: "anthropic:claude-opus-4-8", api_key: {env: LOOK_KEY}}
prompt: |
  You answer for {{ company }}.
  {% if formal %}Be formal.{% endif %}
variables:
  company: {type: string}
  formal: {type: boolean, default: true}
tools: [probe.look]
profiles:
  short: {prompt: "{{ company }}{{ formal }}!"}
"""


def shop(project: Project) -> Project:
    project.agent_file.write_text(AGENT)
    return project


def test_the_prompt_is_printed_as_it_would_be_sent(project: Project) -> None:
    ran = shop(project).run("render", "agents/notes.yaml", "--var", "company=Acme")

    assert (ran.code, ran.out) == (0, "You answer for Acme.\nBe formal.\n")


def test_a_profile_and_a_given_value_count(project: Project) -> None:
    words = ("--profile", "short", "--var", "company=Bo", "--var", "formal=false")

    assert shop(project).run("render", "agents/notes.yaml", *words).out == "BoFalse!\n"


def test_a_value_that_is_missing_is_named(project: Project) -> None:
    ran = shop(project).run("render", "agents/notes.yaml")

    assert (ran.code, ran.out) == (1, "")
    assert "company is missing (--var company=…)" in ran.err


def test_json_tells_the_tools_too_and_nothing_of_the_environment(project: Project) -> None:
    words = ("render", "agents/notes.yaml", "--var", "company=Acme", "--json")

    ran = shop(project).run(*words, LOOK_KEY="the-secret-value")

    assert ran.json["prompt"] == "You answer for Acme.\nBe formal.\n"
    assert [tool["name"] for tool in ran.json["tools"]] == ["look"]
    assert "the-secret-value" not in ran.out
    assert "LOOK_KEY" not in ran.out


def test_a_file_with_mistakes_shows_them(project: Project) -> None:
    project.agent_file.write_text(AGENT + "tols: []\n")

    ran = project.run("render", "agents/notes.yaml")

    assert (ran.code, ran.out) == (1, "")
    assert "error[unknown-key]" in ran.err
