"""Every fence of every page is something that works: it compiles, runs, parses or fits."""

from __future__ import annotations

import configparser
import contextlib
import io
import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import types
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import yaml
from jsonschema import Draft202012Validator
from temporalio.envconfig import ClientConfig

from capuchin_yaml import __version__
from capuchin_yaml.cli.app import program
from capuchin_yaml.cli.output import Output
from capuchin_yaml.client.cluster import ways_to_make
from capuchin_yaml.client.dev_server import temporal_program
from capuchin_yaml.compiler.operator_config import read_operator_config
from capuchin_yaml.engine.contract import SEARCH_ATTRIBUTES
from capuchin_yaml.models.script_file import parse_script
from capuchin_yaml.schema_files import read_schema
from tests.docs.agents import compiled, completed, is_part, shown_briefly, shown_whole
from tests.docs.pages import README, ROOT, Fence, fences, page, shown_after

LANGUAGES = {"sh", "text", "yaml", "python", "json", "toml", "ini", "dockerfile"}
PLAYED = {
    "docs/tutorial/first-agent.md",
    "docs/how-to/approve-from-the-terminal.md",
    "docs/how-to/convert.md",
    "docs/how-to/publish-a-listing.md",
    "docs/how-to/repair-a-file.md",
    "docs/how-to/test-offline.md",
    "docs/reference/client.md",
}
"""Pages whose programs and commands are played by test_played.py."""
OTHER_PROGRAMS = {".", "cat", "cd", "export", "mkdir", "mv", "openssl", "sed", "umask"}
OPERATOR_KEYS = read_schema("operator.v1")["properties"].keys()
TEMPORAL_GLOBALS = {"--namespace"}
"""Options of every command, which their own help leaves out."""
PYTHON_TOOLS = {"lint-imports", "mypy", "pip", "python", "python3", "ruff"}


def each(*languages: str) -> pytest.MarkDecorator:
    found = fences(*languages)
    return pytest.mark.parametrize("fence", found, ids=[fence.place for fence in found])


def test_every_fence_says_what_it_is() -> None:
    unknown = [f.place for f in fences(*{f.language for f in _all()} - LANGUAGES)]

    assert not unknown


@each("yaml")
def test_a_yaml_fence_compiles_or_shows_its_diagnostics(fence: Fence, tmp_path: Path) -> None:
    shown = shown_after(fence) or ""
    if "[" in shown and ("error[" in shown or "warning[" in shown):
        found = compiled(completed(fence.text))
        assert shown in (shown_briefly(found), shown_whole(found))
        return
    value = yaml.safe_load(fence.text)
    if isinstance(value, dict) and value.keys() <= {"rules", "default"}:
        assert parse_script(fence.text, fence.place).rules
        return
    if isinstance(value, dict) and value.keys() <= OPERATOR_KEYS:
        operator = tmp_path / "config.yaml"
        operator.write_text(fence.text, encoding="utf-8")
        assert read_operator_config(operator).diagnostics == ()
        return
    assert is_part(value), f"{fence.place}: neither an agent nor a script"
    assert compiled(completed(fence.text)).diagnostics == ()


@pytest.mark.parametrize(
    "fence",
    [f for f in fences("python") if str(f.page.relative_to(ROOT)) not in PLAYED],
    ids=lambda fence: fence.place,
)
def test_a_python_fence_runs_and_prints_what_is_shown(
    fence: Fence, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = io.StringIO()
    module = types.ModuleType("fence")
    monkeypatch.setitem(sys.modules, "fence", module)
    with contextlib.redirect_stdout(printed):
        exec(compile(fence.text, fence.place, "exec", dont_inherit=True), vars(module))

    if printed.getvalue():
        assert printed.getvalue() == shown_after(fence)


@each("json")
def test_a_json_fence_is_the_document_that_it_shows(fence: Fence) -> None:
    value = json.loads(fence.text)

    assert "kind" in value, f"{fence.place}: no check for this document"
    Draft202012Validator(read_schema("event.v1")).validate(value)


@each("toml")
def test_a_toml_fence_is_a_tool_package_or_profiles_of_temporal(fence: Fence) -> None:
    value = tomllib.loads(fence.text)

    if "profile" in value:
        loaded = ClientConfig.load(config_source=fence.text, config_file_strict=True)
        assert loaded.profiles.keys() == value["profile"].keys()
        assert all(profile.address for profile in loaded.profiles.values())
    else:
        [entry] = value["project"]["entry-points"]["capuchin.tools"].items()
        assert re.fullmatch(r"[a-z0-9_-]+", entry[0])
        assert "capuchin-yaml" in value["project"]["dependencies"]


@each("ini")
def test_a_unit_starts_a_worker_with_words_that_it_takes(fence: Fence) -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None, delimiters=("=",))
    unit.optionxform = str  # type: ignore[assignment,method-assign]  # names keep their case
    unit.read_string(fence.text)

    check_capuchin(shlex.split(unit["Service"]["ExecStart"])[1:])


@each("dockerfile")
def test_a_container_starts_a_worker_with_words_that_it_takes(fence: Fence) -> None:
    [entry] = re.findall(r"^ENTRYPOINT (\[.*\])$", fence.text, re.MULTILINE)

    check_capuchin(json.loads(entry)[1:])


@pytest.mark.parametrize(
    "fence", [f for f in fences("sh") if f.page != README], ids=lambda fence: fence.place
)
def test_a_command_line_has_programs_and_options_that_exist(fence: Fence) -> None:
    for words in commands(fence.text):
        check(words)


def test_the_readme_names_what_exists() -> None:
    first, second = (f.text for f in fences("sh") if f.page == README)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    for line in (first, second):
        for name in re.findall(r"(?<=\s)\.?/?((?:plugins|agents)/[\w./-]+)", line):
            assert (ROOT / name).exists(), name
        for words in commands(line):
            check(words)
    assert "'.[dev]'" in second
    assert "dev" in project["optional-dependencies"]
    assert "capuchin" in project["scripts"]


def test_the_deploy_page_makes_exactly_our_search_attributes() -> None:
    text = (ROOT / "docs/how-to/deploy.md").read_text(encoding="utf-8")

    for command in ways_to_make("shop", SEARCH_ATTRIBUTES):
        assert f"\n{command}\n" in text


def test_the_changelog_names_the_version() -> None:
    assert any(h.name.startswith(f"{__version__} ") for h in page("changelog.md").headings)


def commands(text: str) -> Iterator[list[str]]:
    """Each simple command of a script, without its assignments and redirections."""
    text = re.sub(r"<<'EOF'\n.*?^EOF$", "", text, flags=re.DOTALL | re.MULTILINE)
    for line in text.splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words: list[str] = []
        for word in [*lexer, ";"]:
            if word.strip("();&|") == "" and word:
                yield from _simple(words)
                words = []
            else:
                words.append(word)


def _simple(words: list[str]) -> Iterator[list[str]]:
    kept: list[str] = []
    skip = False
    for i, word in enumerate(words):
        if skip or (word.isdigit() and words[i + 1 : i + 2] == [">"]):
            skip = False
        elif word in (">", "<", ">>", "<<"):
            skip = True
        elif kept or not re.match(r"[A-Z_]+=", word):
            kept.append(word)
    if kept:
        yield kept


def check(words: list[str]) -> None:
    name = words[0].rpartition("/")[2] or words[0]
    match name:
        case "capuchin":
            check_capuchin(words[1:])
        case "temporal":
            check_temporal(words[1:])
        case "run":
            assert (ROOT / words[0]).is_file(), words
        case _:
            known = name in OTHER_PROGRAMS | PYTHON_TOOLS or shutil.which(name) is not None
            assert known, f"no program {name!r}"


def check_capuchin(words: list[str]) -> None:
    """Parse the words as the program would, without running the verb."""
    context = program.make_context("capuchin", list(words), obj=Output(None, None))
    with context:
        rest = _rest(context)
        group: click.Command = program
        while isinstance(group, click.Group):
            _, command, rest = group.resolve_command(context, rest)
            assert command is not None
            inner = command.make_context(command.name, list(rest), parent=context)
            rest = _rest(inner)
            group, context = command, inner


def _rest(context: click.Context) -> list[str]:
    """The words that a group leaves to its commands; click 8 keeps the first ones apart."""
    return [*getattr(context, "_protected_args", ()), *context.args]


def check_temporal(words: list[str]) -> None:
    """Have Temporal's own program explain the command, and find the options there."""
    verbs = [word for word in words[: _first_option(words)]]
    done = subprocess.run(
        [temporal_program(), *verbs, "--help"], capture_output=True, text=True, check=True
    )

    for word in words:
        if word.startswith("--") and word not in TEMPORAL_GLOBALS:
            assert f"{word} " in done.stdout, word


def _first_option(words: list[str]) -> int:
    return next((i for i, word in enumerate(words) if word.startswith("-")), len(words))


def _all() -> list[Fence]:
    from tests.docs.pages import pages

    return [fence for each_page in pages() for fence in each_page.fences]
