"""What a new definition reaches and may cost, beside the one before."""

from __future__ import annotations

from dataclasses import replace

import pytest

from capuchin_yaml.policy.compare import changes
from capuchin_yaml.spec import AgentSpec, ApprovalSpec, BudgetSpec, ModelChoice, ModelSettings

PLAIN = AgentSpec(name="a", prompt="p", model="anthropic:x")
ABROAD = replace(PLAIN, model_settings=ModelSettings(base_url="http://h", key_variable="K"))
NEED = "env K for the model at http://h"


def shown(old: AgentSpec, new: AgentSpec) -> list[tuple[str, str, str]]:
    return [(c.kind, c.what, c.text) for c in changes(old, new)]


def test_another_address_and_key_are_loosened_and_come_first() -> None:
    assert shown(PLAIN, ABROAD) == [
        ("loosened", "needs", f"also {NEED}"),
        ("changed", "model", "is asked in another way"),
    ]
    assert shown(ABROAD, PLAIN)[0] == ("tightened", "needs", f"no longer {NEED}")


def test_the_needs_of_a_fallback_count() -> None:
    fallback = (ModelChoice("anthropic:y", ABROAD.model_settings),)
    new = replace(PLAIN, model_settings=ModelSettings(fallback=fallback))

    assert ("loosened", "needs", f"also {NEED}") in shown(PLAIN, new)


@pytest.mark.parametrize(
    ("old", "new", "kind", "what"),
    [
        (None, BudgetSpec("2"), "tightened", "budget"),
        (BudgetSpec("2"), None, "loosened", "budget"),
        (BudgetSpec("2"), BudgetSpec("10"), "loosened", "budget.max_usd"),
        (BudgetSpec("10"), BudgetSpec("2"), "tightened", "budget.max_usd"),
        (BudgetSpec("2", 9), BudgetSpec("2"), "loosened", "budget.max_tokens"),
        (BudgetSpec("2"), BudgetSpec("2", per="day"), "tightened", "budget.per"),
        (BudgetSpec("2"), BudgetSpec("2", on_exceed="warn"), "loosened", "budget.on_exceed"),
        (BudgetSpec("2"), BudgetSpec("2", on_exceed="stop"), "tightened", "budget.on_exceed"),
    ],
)
def test_a_larger_budget_is_loosened(
    old: BudgetSpec | None, new: BudgetSpec | None, kind: str, what: str
) -> None:
    [change] = changes(replace(PLAIN, budget=old), replace(PLAIN, budget=new))

    assert (change.kind, change.what) == (kind, what)


def test_fewer_people_to_decide_are_loosened() -> None:
    two = replace(PLAIN, approval=ApprovalSpec("all", quorum=2))
    one = replace(PLAIN, approval=ApprovalSpec("all"))

    assert [c.kind for c in changes(two, one)] == ["loosened"]
    assert [c.kind for c in changes(one, two)] == ["changed"]
