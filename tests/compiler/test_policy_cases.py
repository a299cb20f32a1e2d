"""Policy tests: calls, verdicts, and what no call reaches."""

from __future__ import annotations

from pathlib import Path

import pytest

from capuchin_yaml.compiler.policy_cases import PolicyTest, run_policy_test
from tests.compiler.packages import PaperSource

AGENT = """\
apiVersion: capuchin/v1
name: shop
prompt: Hi {{ city }}.
variables: {city: {default: Ulm}}
injected: [tenant]
tools:
  - billing.lookup_order
  - {use: billing.issue_refund, as: refund}
approval:
  policy: denylist
  tools: [refund]
  rules:
    - {tool: refund, when: args.amount_cents > 500, then: deny}
    - {tool: refund, when: conversation.total.amount_cents + args.amount_cents > 900, then: deny}
    - {tool: refund, when: "conversation.calls > 2 || conversation.untrusted", then: ask}
    - {tool: refund, when: "now.getHours() < 6 || variables.city == 'Bonn'", then: ask}
    - {tool: refund, when: injected.tenant == 7, then: allow}
"""
ARGS = "order_id: a, rate: 1, lines: []"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.yaml").write_text(AGENT)
    return tmp_path


def run(folder: Path, text: str) -> PolicyTest:
    path = folder / "shop.policy.yaml"
    path.write_text(text)
    return run_policy_test(path, PaperSource())


def outcomes(test: PolicyTest) -> list[tuple[bool, str, str]]:
    return [(r.passed, r.verdict["verdict"], r.verdict["decided_by"]) for r in test.results]


def test_calls_get_their_verdicts(folder: Path) -> None:
    test = run(
        folder,
        f"""\
agent: shop.yaml
injected: {{tenant: 7}}
calls:
  - {{tool: billing.lookup_order, expect: allow, by: policy}}
  - {{tool: refund, args: {{amount_cents: 501, {ARGS}}}, expect: deny, by: rule 1}}
  - {{tool: refund, args: {{amount_cents: 500, {ARGS}}}, expect: allow, by: rule 5}}
  - tool: refund
    args: {{amount_cents: 500, {ARGS}}}
    total: {{amount_cents: 401}}
    expect: deny
  - {{tool: refund, args: {{amount_cents: 5, {ARGS}}}, calls: 3, expect: ask, by: rule 3}}
  - {{tool: refund, args: {{amount_cents: 5, {ARGS}}}, untrusted: true, expect: ask}}
  - {{tool: refund, args: {{amount_cents: 5, {ARGS}}}, now: "2026-01-01T05:00:00Z", expect: ask}}
  - {{tool: refund, args: {{}}, expect: invalid}}
""",
    )

    assert [passed for passed, _, _ in outcomes(test)] == [True] * 8
    assert test.passed
    assert (test.untested_tools, test.untested_rules) == ((), ())


def test_what_no_call_reaches_is_named(folder: Path) -> None:
    test = run(
        folder,
        f"agent: shop.yaml\ncalls:\n  - {{tool: refund, expect: deny, "
        f"args: {{amount_cents: 501, {ARGS}}}}}\n",
    )

    assert test.untested_tools == ("billing.lookup_order",)
    assert test.untested_rules == (2, 3, 4, 5)


def test_another_verdict_or_another_decider_fails(folder: Path) -> None:
    test = run(
        folder,
        "agent: shop.yaml\ncalls:\n"
        "  - {tool: billing.lookup_order, expect: ask}\n"
        "  - {tool: billing.lookup_order, expect: allow, by: rule 1}\n",
    )

    assert [passed for passed, _, _ in outcomes(test)] == [False, False]
    assert not test.passed


@pytest.mark.parametrize(
    ("text", "id_"),
    [
        ("agent: shop.yaml\ncalls: []\n", "empty-value"),
        ("agent: nope.yaml\ncalls: [{tool: refund, expect: ask}]\n", "file-missing"),
        ("agent: shop.yaml\ncalls: [{tool: refnd, expect: ask}]\n", "names-no-tool"),
        ("agent: shop.yaml\ncalls: [{tool: refund, expect: maybe}]\n", "unknown-value"),
        ("agent: shop.yaml\ncalls: [{tool: refund, expct: ask}]\n", "unknown-key"),
        ("agent: shop.yaml\ncalls: [{tool: refund, expect: ask, by: rule 9}]\n", "unknown-rule"),
        ("agent: shop.yaml\ncalls: [{tool: refund, expect: ask, now: noon}]\n", "bad-value"),
        ("agent: [\n", "unclosed-bracket"),
    ],
)
def test_a_mistake_in_the_file_is_shown_and_nothing_is_judged(
    folder: Path, text: str, id_: str
) -> None:
    test = run(folder, text)

    assert id_ in [d.id for d in test.diagnostics]
    assert (test.results, test.passed) == ((), False)


def test_an_agent_with_mistakes_is_not_judged(folder: Path) -> None:
    (folder / "shop.yaml").write_text(AGENT + "nope: 1\n")

    test = run(folder, "agent: shop.yaml\ncalls: [{tool: refund, expect: ask}]\n")

    assert [d.id for d in test.diagnostics] == ["agent-has-mistakes"]


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    test = run_policy_test(tmp_path / "no.policy.yaml")

    assert [d.id for d in test.diagnostics] == ["unreadable"]
