"""What a file means once it is compiled."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capuchin_yaml.compiler.load import Compiled, compile_bytes
from capuchin_yaml.spec import (
    AgentSpec,
    ApprovalSpec,
    Limits,
    Listing,
    PriceSpec,
    ToolSpec,
    VariableSpec,
)
from tests.compiler.corpus import FOLDER, INVALID, VALID, compiled
from tests.compiler.packages import PaperPackage, PaperSource, PaperTool, tools

HEAD = "apiVersion: capuchin/v1\nname: triage\nprompt: Sort the mail.\n"


def compile_text(text: str, source: PaperSource | None = None) -> Compiled:
    return compile_bytes(text.encode(), Path("a.yaml"), source or PaperSource())


def spec_of(text: str, source: PaperSource | None = None) -> AgentSpec:
    result = compile_text(text, source)
    assert result.spec is not None, result.diagnostics
    return result.spec


def test_the_smallest_file_has_every_default() -> None:
    assert spec_of(HEAD) == AgentSpec(
        name="triage",
        prompt="Sort the mail.",
        api_version="capuchin/v1",
        version="0.0.0",
        description="",
        model=None,
        variables={},
        injected=(),
        tools=(),
        approval=ApprovalSpec("default", (), None, "deny"),
        limits=Limits(8, 40, 8, 5),
        price=PriceSpec("free"),
        listing=Listing(),
    )


def test_every_key_of_the_format_reaches_the_spec() -> None:
    spec = compiled(FOLDER / "valid" / "everything.yaml").spec

    assert spec is not None
    assert spec.name == "billing"
    assert spec.version == "1.2.0"
    assert spec.description == "Looks up orders and refunds them when they qualify."
    assert spec.model == "anthropic:claude-opus-4-8"
    assert spec.prompt.startswith("You are a billing-support agent for {{ company }}.\n")
    assert spec.variables == {
        "company": VariableSpec("string", "Acme", False, (), "The shop."),
        "formal": VariableSpec("boolean", None, True),
        "tone": VariableSpec("string", "warm", False, ("warm", "plain")),
    }
    assert spec.injected == ("tenant", "region")
    assert [(t.identity, t.alias, t.timeout_s) for t in spec.tools] == [
        ("billing.lookup_order", "lookup_order", 60.0),
        ("billing.issue_refund", "refund", 5400.0),
        ("sql.schema", "schema", 60.0),
        ("sql.query", "query", 60.0),
        ("clock.now", "time", 60.0),
    ]
    assert [dict(t.config) for t in spec.tools] == [
        {},
        {"currency": "EUR"},
        {"database": "main.db", "rows": 10},
        {"database": "main.db", "rows": 10},
        {},
    ]
    assert spec.approval == ApprovalSpec(
        "denylist", ("billing.issue_refund", "query"), 86400.0, "close"
    )
    assert spec.limits == Limits(20, 100, 4, 2, 259200.0)
    assert spec.price == PriceSpec("per_conversation", "1.50", "USD", "1", "0.10")
    assert spec.listing == Listing(
        "MIT", "Acme", "https://example.org/billing?x=1", ("support",), ("refunds", "orders")
    )


def test_a_tool_carries_all_that_its_package_says() -> None:
    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    tool = PaperTool(
        "wipe",
        effect="destructive",
        description="Wipes a disk.",
        input_schema=schema,
        idempotent=True,
        needs_approval=True,
        version="7",
        timeout_s=12.5,
    )
    source = PaperSource({"disk": PaperPackage("acme-disk", "3.1", tools(tool))})

    (found,) = spec_of(f"{HEAD}tools: [disk.wipe]\n", source).tools

    assert found == ToolSpec(
        identity="disk.wipe",
        alias="wipe",
        description="Wipes a disk.",
        input_schema=schema,
        effect="destructive",
        idempotent=True,
        needs_approval=True,
        tool_version="7",
        distribution="acme-disk",
        distribution_version="3.1",
        config={},
        timeout_s=12.5,
    )


def test_only_the_packages_that_a_file_names_are_imported() -> None:
    source = PaperSource()

    spec_of(f"{HEAD}tools: [clock.now]\n", source)

    assert set(source.imported) == {"clock"}


def test_the_spec_of_a_file_survives_its_json_form() -> None:
    for path in VALID:
        spec = compiled(path).spec

        assert spec is not None
        assert AgentSpec.from_json(spec.to_json()) == spec
        assert AgentSpec.from_json(spec.to_json()).definition_hash == spec.definition_hash


@pytest.mark.parametrize(
    "same",
    [
        HEAD.replace("\n", "\r\n"),
        "\ufeff" + HEAD,
        "---\n" + HEAD + "...\n",
        "# a note\n" + HEAD + "x-note: {a: [1, 2]}\n",
        "prompt: 'Sort the mail.'\n\"name\": triage\napiVersion: capuchin/v1\n",
        '{"apiVersion": "capuchin/v1", "name": "triage", "prompt": "Sort the mail."}',
        HEAD + "limits: {max_steps: 8, x-why: slow}\nprice: {type: free}\n",
    ],
)
def test_files_that_mean_the_same_have_the_same_hash(same: str) -> None:
    assert spec_of(same).definition_hash == spec_of(HEAD).definition_hash


@pytest.mark.parametrize(
    "other",
    [
        HEAD.replace("mail", "post"),
        HEAD + "version: 0.0.1\n",
        HEAD + "approval: auto\n",
        HEAD + "limits: {same_call: 6}\n",
        HEAD + "tools: [clock.now]\n",
        HEAD + "injected: [tenant]\n",
    ],
)
def test_files_that_mean_something_else_have_another_hash(other: str) -> None:
    assert spec_of(other).definition_hash != spec_of(HEAD).definition_hash


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("30s", 30.0), ("5m", 300.0), ("24h", 86400.0), ("1h30m", 5400.0), ("1h0m1s", 3601.0)],
)
def test_a_duration_is_counted_in_seconds(written: str, seconds: float) -> None:
    assert spec_of(f"{HEAD}approval: {{timeout: {written}}}\n").approval.timeout_s == seconds


@pytest.mark.parametrize("written", ["'0.10'", '"0.10"', '"00.10"'])
def test_an_amount_is_taken_as_written_and_never_through_a_float(written: str) -> None:
    text = f"{HEAD}price: {{type: per_call, amount: {written}, currency: USD}}\n"

    assert spec_of(text).price.amount == "0.10"


def test_an_amount_keeps_every_digit() -> None:
    text = f'{HEAD}price: {{type: per_call, amount: "123456789012.123456789012", currency: USD}}\n'

    assert spec_of(text).price.amount == "123456789012.123456789012"


@pytest.mark.parametrize("written", ["0.10", "00.10", "123456789012.123456789012"])
def test_an_amount_that_would_be_a_float_is_refused_and_repaired_as_written(written: str) -> None:
    text = f"{HEAD}price: {{type: per_call, amount: {written}, currency: USD}}\n"
    [found] = compile_text(text).diagnostics

    assert found.id == "bad-amount"
    assert found.fix is not None
    assert found.fix.text == f'"{Decimal(written)}"'


@pytest.mark.parametrize("path", INVALID, ids=lambda p: p.stem)
def test_no_mistake_leaves_a_spec_behind(path: Path) -> None:
    assert compiled(path).spec is None


@pytest.mark.parametrize(
    "block",
    [
        "aproval: all",
        "Approval: all",
        "approval: al",
        "approval: {polcy: all}",
        "approval: {policy: al}",
        "approval: {policy: all, tools: []}",
        "approval: {policy: denylist}",
        "approval: {policy: denylist, tool: [refund]}",
        "approval: {policy: denylist, tools: [refnd]}",
        "approval: {policy: denylist, tools: refund}",
        "approval: {policy: denylist, tools: }",
        "approval: []",
        "approval: {}",
        "approval:",
        "approval: ~",
        "limits: {approval: all}",
        "approval: auto\napproval: all",
        "approval: {auto: true}",
        "approval: [auto]",
        "approval: true",
        "approval: !auto all",
    ],
)
def test_a_mistyped_approval_never_runs_anything(block: str) -> None:
    text = f"{HEAD}tools:\n  - {{use: billing.issue_refund, as: refund}}\n{block}\n"

    assert compile_text(text).spec is None


def test_an_identity_means_every_entry_of_it_and_an_alias_only_its_own() -> None:
    two = "tools:\n  - {use: sql.query, as: a, config: {database: a}}\n"
    two += "  - {use: sql.query, as: b, config: {database: b}}\n"

    assert compile_text(f"{HEAD}{two}approval: {{policy: denylist, tools: [sql.query]}}\n").spec
    listed = compile_text(f"{HEAD}{two}approval: {{policy: denylist, tools: [a, sql.query]}}\n")
    assert listed.spec is not None
    assert listed.diagnostics == ()
    again = compile_text(f"{HEAD}{two}approval: {{policy: denylist, tools: [sql.query, a]}}\n")
    assert [d.id for d in again.diagnostics] == ["listed-twice"]


def test_a_package_whose_config_schema_is_wrong_is_named() -> None:
    package = PaperPackage("acme-disk", "3.1", tools(PaperTool("wipe")), {"type": "nonsense"})
    result = compile_text(
        f"{HEAD}tools: [{{use: disk.wipe, config: {{a: 1}}}}]\n", PaperSource({"disk": package})
    )

    assert [d.id for d in result.diagnostics] == ["package-unavailable"]
    assert "acme-disk 3.1" in result.diagnostics[0].message


def test_a_config_schema_never_reaches_out_to_the_network() -> None:
    schema = {"$ref": "http://127.0.0.1:9/never.json"}
    package = PaperPackage("acme-disk", "3.1", tools(PaperTool("wipe")), schema)
    result = compile_text(
        f"{HEAD}tools: [{{use: disk.wipe, config: {{a: 1}}}}]\n", PaperSource({"disk": package})
    )

    assert [d.id for d in result.diagnostics] == ["package-unavailable"]


def test_a_config_that_a_yaml_trap_would_change_reaches_the_tool_as_written() -> None:
    package = PaperPackage("acme-disk", "3.1", tools(PaperTool("wipe")), {"type": "object"})
    text = f"{HEAD}tools: [{{use: disk.wipe, config: {{at: 12:30, on: no, day: 2024-01-01}}}}]\n"

    (tool,) = spec_of(text, PaperSource({"disk": package})).tools
    assert tool.config == {"at": "12:30", "on": "no", "day": "2024-01-01"}


WORDS = st.sampled_from(
    [
        *("apiVersion: capuchin/v1", "name: a", "name: no", "prompt: Hi {{ v }}", "prompt: |"),
        *("  text {{ v|upper }}", "variables:", "  v: {default: x}", "  v: 3", "tools:"),
        *("  - billing.lookup_order", "  - use: sql.query", "    config: {database: x}"),
        *("    as: b", "approval:", "  policy: denylist", "  tools: [b]", "approval: all"),
        *("limits: {max_steps: 3}", "limits:", "price: {type: free}", "x-a: &a 1", "price: *a"),
        *("injected: [v]", "  - agent: c", "model: {env: X}", "floor: 1", "prompt: {% if", "- x"),
    ]
)


@settings(max_examples=200, deadline=None)
@given(st.lists(WORDS, max_size=14).map("\n".join))
def test_any_lines_give_a_spec_or_an_error(text: str) -> None:
    result = compile_text(text)

    assert (result.spec is None) == any(d.severity == "error" for d in result.diagnostics)
