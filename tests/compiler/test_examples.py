"""The example agents compile against the real packages."""

from __future__ import annotations

from pathlib import Path

import pytest

from capuchin_yaml.compiler.load import compile_file, find_agents

AGENTS = Path(__file__).parent.parent.parent / "agents"


@pytest.mark.parametrize("path", find_agents([AGENTS]), ids=lambda p: p.stem)
def test_an_example_compiles_without_a_word(path: Path) -> None:
    result = compile_file(path)

    assert result.diagnostics == ()
    assert result.spec is not None
    assert result.spec.name == path.stem


def test_the_billing_example_asks_only_before_a_refund() -> None:
    spec = compile_file(AGENTS / "billing.yaml").spec

    assert spec is not None
    assert [(t.identity, t.alias, t.effect) for t in spec.tools] == [
        ("billing.lookup_order", "lookup_order", "read"),
        ("billing.issue_refund", "refund", "write"),
    ]
    assert spec.approval.policy == "denylist"
    assert spec.approval.tools == ("billing.issue_refund",)


def test_each_example_names_its_schema_for_editors() -> None:
    for path in find_agents([AGENTS]):
        first = path.read_text(encoding="utf-8").splitlines()[0]

        assert first.startswith("# yaml-language-server: $schema=")
        assert (path.parent / first.partition("$schema=")[2]).is_file()
