"""Every diagnostic has its page, and the examples on the pages are what is printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from capuchin_yaml.compiler.load import compile_bytes
from capuchin_yaml.compiler.pages import diagnostic_pages
from capuchin_yaml.compiler.render import concise
from capuchin_yaml.compiler.tool_source import SourcePackage
from capuchin_yaml.tools.registry import Registry
from tests.compiler.corpus import INVALID, VALID, compiled

SOURCES = Path(__file__).parents[2] / "capuchin_yaml"
_EXAMPLE = re.compile(r"```yaml\n(.*?)```\n+```text\n(.*?)```", re.DOTALL)


def _ids_in_code() -> set[str]:
    """Words in the code of compiler and policy that are in the place of a diagnostic's id."""
    found: set[str] = set()
    calls = re.compile(
        r"""(?:(?:\.error|\.warning|report|_report|Diagnostic|RuleProblem|UnknownKey|_error)\(\s*"""
        r"""|id_ = )"([a-z]+(?:-[a-z]+)+)",?"""
    )
    for path in [*(SOURCES / "compiler").glob("*.py"), *(SOURCES / "policy").glob("*.py")]:
        found |= set(calls.findall(path.read_text(encoding="utf-8")))
    return found


def test_every_diagnostic_of_the_corpus_has_a_page() -> None:
    seen = {d.id for path in [*VALID, *INVALID] for d in compiled(path).diagnostics}

    assert seen - set(diagnostic_pages()) == set()


def test_every_diagnostic_in_the_code_has_a_page() -> None:
    assert len(_ids_in_code()) > 40
    assert _ids_in_code() - set(diagnostic_pages()) == set()


class _OurPackages:
    """The packages of this project alone, whatever else a machine has."""

    def entry_names(self) -> tuple[str, ...]:
        return ("billing", "clock")

    def package(self, entry: str) -> SourcePackage:
        return Registry.installed().package(entry)


def _examples() -> list[tuple[str, str, str]]:
    return [
        (name, yaml, text)
        for name, page in diagnostic_pages().items()
        for yaml, text in _EXAMPLE.findall(page)
    ]


@pytest.mark.parametrize(("name", "yaml", "text"), _examples(), ids=lambda v: v[:20])
def test_an_example_is_what_is_printed(name: str, yaml: str, text: str) -> None:
    given = {line.split(":")[0] for line in yaml.splitlines() if re.match(r"[A-Za-z]+:", line)}
    rest = {"apiVersion": "capuchin/v1", "name": "a", "prompt": "Answer."}
    if name != "empty-file":
        yaml += "".join(f"{k}: {v}\n" for k, v in rest.items() if k not in given)

    found = compile_bytes(yaml.encode(), Path("agent.yaml"), _OurPackages()).diagnostics

    said = "".join(
        f"{concise(d)}\n" + (f"  help: {d.help}\n" if d.help is not None else "") for d in found
    )
    assert said == text
