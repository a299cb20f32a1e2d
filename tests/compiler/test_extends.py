"""`extends` and `profiles`: what is inherited, what is replaced, and what is never reached."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from capuchin_yaml.compiler.file_needs import file_needs
from capuchin_yaml.compiler.load import Compiled, compile_file
from capuchin_yaml.policy.needs import needs_of
from capuchin_yaml.spec import AgentSpec
from tests.compiler.packages import PaperSource

HEAD = "apiVersion: capuchin/v1\nname: child\nextends: base.yaml\n"
BASE = """\
apiVersion: capuchin/v1
name: base
version: 9.0.0
prompt: You answer for {{ company }}.
model: {name: "anthropic:claude-opus-4-8", max_tokens: 2000, temperature: 0.5}
variables: {company: {type: string, default: Acme, description: Who.}}
tools: [billing.lookup_order, billing.issue_refund]
approval:
  policy: denylist
  tools: [billing.issue_refund]
  timeout: 1h
price: {type: per_call, amount: "1", currency: USD, min: "0.5"}
limits: {max_steps: 3, max_tool_calls: 9}
"""


def both(folder: Path, child: str, base: str = BASE, profile: str | None = None) -> Compiled:
    (folder / "base.yaml").write_text(base)
    (folder / "child.yaml").write_text(HEAD + child)
    return compile_file(folder / "child.yaml", PaperSource(), profile=profile)


def spec(compiled: Compiled) -> AgentSpec:
    assert compiled.spec is not None, compiled.diagnostics
    return compiled.spec


def ids(compiled: Compiled) -> list[str]:
    return [d.id for d in compiled.diagnostics]


def test_maps_are_merged_and_the_file_says_for_itself_who_it_is(tmp_path: Path) -> None:
    child = spec(both(tmp_path, "limits: {max_steps: 20}\nvariables: {company: {default: Bo}}\n"))

    assert (child.name, child.version) == ("child", "0.0.0")
    assert (child.limits.max_steps, child.limits.max_tool_calls) == (20, 9)
    assert (child.variables["company"].default, child.variables["company"].description) == (
        "Bo",
        "Who.",
    )
    assert child.approval.policy == "denylist"


def test_lists_are_replaced(tmp_path: Path) -> None:
    child = spec(both(tmp_path, "tools: [clock.now]\napproval: all\n"))

    assert [tool.identity for tool in child.tools] == ["clock.now"]


def test_a_policy_of_its_own_inherits_no_list(tmp_path: Path) -> None:
    allow = both(tmp_path, "approval: {policy: allowlist}\n")

    assert ids(allow) == ["list-missing"]


def test_a_short_approval_can_be_added_to(tmp_path: Path) -> None:
    base = "prompt: Answer.\ntools: [billing.issue_refund]\napproval: all\n"

    child = spec(both(tmp_path, "approval: {timeout: 2h}\n", base))

    assert (child.approval.policy, child.approval.timeout_s) == ("all", 7200)


def test_a_model_of_its_own_inherits_no_settings_and_settings_keep_the_model(
    tmp_path: Path,
) -> None:
    other = spec(both(tmp_path, "model: {name: rehearsal}\n"))
    longer = spec(both(tmp_path, "model: {max_tokens: 9000}\n"))

    assert (other.model, other.model_settings.temperature) == ("rehearsal", None)
    assert longer.model == "anthropic:claude-opus-4-8"
    assert (longer.model_settings.max_tokens, longer.model_settings.temperature) == (9000, 0.5)


def test_a_price_of_its_own_type_inherits_nothing_of_another_price(tmp_path: Path) -> None:
    child = spec(both(tmp_path, "price: {type: free}\n"))

    assert (child.price.type, child.price.amount, child.price.min) == ("free", None, None)


def test_the_other_file_is_a_part_of_the_agent_also_when_it_is_broken(tmp_path: Path) -> None:
    good = both(tmp_path, "")
    broken = both(tmp_path, "", "prompt: [\n")

    assert [str(p) for p in good.parts] == [str(tmp_path / "base.yaml")]
    assert [str(p) for p in broken.parts] == [str(tmp_path / "base.yaml")]


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "secret.yaml").write_text(BASE)
    os.symlink(tmp_path / "secret.yaml", inside / "base.yaml")
    (inside / "child.yaml").write_text(HEAD)

    found = compile_file(inside / "child.yaml", PaperSource())

    assert (found.spec, ids(found), found.parts) == (None, ["path-outside"], {})


def test_a_script_named_in_another_folder_is_found_from_the_agents_own(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "talk.yaml").write_text("default: {say: ok}\n")
    (tmp_path / "shared" / "base.yaml").write_text("prompt: Hi.\nmodel: scripted:talk.yaml\n")
    (tmp_path / "child.yaml").write_text(HEAD.replace("base.yaml", "shared/base.yaml"))

    found = compile_file(tmp_path / "child.yaml", PaperSource())

    assert spec(found).model == "scripted:shared/talk.yaml"


def test_an_approval_that_the_other_file_has_wrong_is_reported_though_it_is_replaced(
    tmp_path: Path,
) -> None:
    base = BASE.replace("policy: denylist", "policy: denylst")

    found = both(tmp_path, "approval: auto\n", base)

    assert (found.spec, "unknown-value" in ids(found)) == (None, True)


@pytest.mark.parametrize(
    ("child", "warns"),
    [
        ("approval: all\n", False),
        ("approval: auto\n", True),
        ("approval: {timeout: 3h}\n", False),
        ("approval: {rules: [{tool: billing.issue_refund, then: allow}]}\n", True),
        ("approval: {rules: [{tool: billing.issue_refund, then: deny}]}\n", False),
        ("tools: [billing.issue_refund]\n", False),
    ],
)
def test_a_loosened_approval_is_a_warning(tmp_path: Path, child: str, warns: bool) -> None:
    found = both(tmp_path, child)

    assert spec(found).name == "child"
    assert ("approval-loosened" in ids(found)) is warns


def test_equal_agents_have_one_hash_however_they_are_put_together(tmp_path: Path) -> None:
    whole = tmp_path / "whole.yaml"
    whole.write_text(BASE.replace("name: base", "name: child").replace("version: 9.0.0\n", ""))

    alone = spec(compile_file(whole, PaperSource()))

    assert spec(both(tmp_path, "")).definition_hash == alone.definition_hash


PROFILES = """\
profiles:
  dev: {model: rehearsal, limits: {max_steps: 1}}
  live:
    model: {name: "anthropic:x", base_url: "http://localhost:1", api_key: {env: LIVE_KEY}}
"""


def test_a_profile_is_a_patch_of_the_whole(tmp_path: Path) -> None:
    plain = spec(both(tmp_path, PROFILES))
    dev = both(tmp_path, PROFILES, profile="dev")

    assert (spec(dev).model, spec(dev).limits.max_steps) == ("rehearsal", 1)
    assert (plain.model, plain.limits.max_steps) == ("anthropic:claude-opus-4-8", 3)
    assert (dev.profiles, dev.profile) == (("dev", "live"), "dev")


def test_the_needs_of_the_file_and_of_the_spec_agree_for_each_profile(tmp_path: Path) -> None:
    for profile in (None, "dev", "live"):
        compiled = both(tmp_path, PROFILES, profile=profile)

        assert file_needs(compiled.path, profile).needs == needs_of(spec(compiled))
    assert [str(n) for n in needs_of(spec(compiled))] == [
        "env LIVE_KEY for the model at http://localhost:1"
    ]


def test_a_profile_inherited_from_the_other_file_can_be_changed(tmp_path: Path) -> None:
    child = "profiles: {dev: {limits: {max_tool_calls: 2}}}\n"

    dev = spec(both(tmp_path, child, BASE + PROFILES, profile="dev"))

    assert (dev.model, dev.limits.max_steps, dev.limits.max_tool_calls) == ("rehearsal", 1, 2)


def test_a_file_without_profiles_takes_one_for_nothing(tmp_path: Path) -> None:
    assert spec(both(tmp_path, "", profile="dev")).limits.max_steps == 3
