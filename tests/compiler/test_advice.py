"""Warnings about what changes nothing, and about files that cost nothing to look at."""

from __future__ import annotations

from pathlib import Path

from capuchin_yaml.compiler.load import compile_bytes
from tests.compiler.packages import PaperPackage, PaperSource, PaperTool, tools

HEAD = "apiVersion: capuchin/v1\nname: a\nprompt: Answer.\ntools: [shop.buy, shop.look]\n"
SHOP = PaperSource(
    {
        "shop": PaperPackage(
            "capuchin-shop",
            "1.0.0",
            tools(PaperTool("buy", "write", needs_approval=True), PaperTool("look")),
        )
    }
)


def ids(text: str) -> list[str]:
    return [d.id for d in compile_bytes((HEAD + text).encode(), Path("a.yaml"), SHOP).diagnostics]


def test_a_tool_whose_author_wants_a_person_is_allowed_in_vain() -> None:
    assert ids("approval: {policy: allowlist, tools: [shop.buy, shop.look]}\n") == [
        "listed-in-vain"
    ]


def test_it_is_denied_with_effect_as_its_package_may_change_its_mind() -> None:
    assert ids("approval: {policy: denylist, tools: [shop.buy]}\n") == []


def test_a_secret_is_found_also_where_its_letters_are_escaped() -> None:
    escaped = 'description: "\\u0073k-ant-0123456789abcdefghij"\n'

    assert ids(escaped) == ["secret-literal"]


def test_the_package_that_a_file_names_is_never_the_one_to_install() -> None:
    text = HEAD.replace("shop.buy", "evil-name.run").replace(", shop.look", "")
    [found] = compile_bytes(text.encode(), Path("a.yaml"), SHOP).diagnostics

    assert found.id == "package-not-installed"
    assert found.help is not None
    assert "capuchin-evil" not in found.help
    assert found.help.endswith("then type: pip install PACKAGE")
    assert "not known to us" in found.help
