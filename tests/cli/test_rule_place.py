"""A call that a rule asks about is shown with that rule and its place in the file."""

from __future__ import annotations

from tests.cli.program import AGENT, Project

RULES = """\
approval:
  policy: auto
  rules:
    - tool: probe.look
      then: allow
    - tool: probe.note
      when: args.word == "much"
      then: ask
      reason: Much is much.
"""


def test_an_item_tells_its_rule_with_file_and_line(project: Project) -> None:
    text = AGENT.format(name="ruled", asks="probe.note")
    kept = [line for line in text.splitlines() if not line.startswith("approval:")]
    (project.folder / "agents" / "ruled.yaml").write_text("\n".join(kept) + "\n" + RULES)
    line = len(kept) + 6
    with project.up("--no-tui"):
        [item] = project.run("send", "ruled", "note much", "--json").json["items"]
        told = project.run("inbox", "show", item["id"], "--json").json
        shown = project.run("inbox", "show", item["id"]).out

    written = 'tool: probe.note · when: args.word == "much" · then: ask · reason: Much is much.'
    assert told["rule"] == f"rule 2 (agents/ruled.yaml:{line}): {written}"
    assert told["rule"] in " ".join(shown.split())
