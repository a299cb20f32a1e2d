"""Files on disk: which ones are agents, and why one cannot be read."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from capuchin_yaml.compiler.load import compile_file, find_agents
from tests.compiler.packages import PaperSource

AGENT = "apiVersion: capuchin/v1\nname: triage\nprompt: Sort the mail – quickly.\n"


def write(path: Path, text: str | bytes = AGENT) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def why(path: Path) -> str:
    result = compile_file(path, PaperSource())
    assert result.spec is None
    (problem,) = result.diagnostics
    assert problem.id == "unreadable"
    assert (problem.span.line, problem.span.column) == (1, 1)
    return problem.message


def test_a_file_that_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    assert "there is no such file" in why(tmp_path / "agent.yaml")


def test_a_folder_named_like_an_agent_is_said_to_be_a_folder(tmp_path: Path) -> None:
    (tmp_path / "agent.yaml").mkdir()

    assert "it is a folder" in why(tmp_path / "agent.yaml")


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "agent.yaml")

    assert "it is no plain file" in why(tmp_path / "agent.yaml")


def test_a_path_through_a_file_says_so(tmp_path: Path) -> None:
    assert "Not a directory" in why(write(tmp_path / "a.yaml") / "b.yaml")


def test_a_link_to_itself_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").symlink_to(tmp_path / "a.yaml")

    assert "symbolic links" in why(tmp_path / "a.yaml")


def test_a_file_without_permission_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "a.yaml")

    def refuse(*_args: object, **_kwargs: object) -> None:
        # The superuser may read everything, so the answer of the system is given here.
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "open", refuse)
    assert "this user may not read it" in why(path)


@pytest.mark.parametrize("name", ["a\0b.yaml", "x" * 5000 + ".yaml"])
def test_a_path_that_no_system_takes_is_no_crash(tmp_path: Path, name: str) -> None:
    assert why(tmp_path / name)
    assert find_agents([tmp_path / name]) == (tmp_path / name,)


@pytest.mark.parametrize(
    "name", ["plain.yaml", "with space.yaml", "# hash 👋/agent.yaml", "é/%41/a:b.yaml"]
)
def test_a_file_compiles_alike_wherever_it_lies(tmp_path: Path, name: str) -> None:
    result = compile_file(write(tmp_path / name), PaperSource())

    assert result.spec is not None
    assert result.spec.name == "triage"
    assert result.path == tmp_path / name


def test_files_beside_an_agent_are_found_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "agents" / "a.yaml", AGENT + "model: scripted:talk.yaml\n")
    write(tmp_path / "agents" / "talk.yaml", "default: {say: ok}\n")
    (tmp_path / "link").symlink_to(tmp_path / "agents")
    (tmp_path / "of-file.yaml").symlink_to(path)
    hashes = set()
    for folder, name in (
        (tmp_path, "agents/a.yaml"),
        (tmp_path / "agents", "a.yaml"),
        (tmp_path, str(path)),
        (tmp_path, "link/a.yaml"),
        (tmp_path, "of-file.yaml"),
    ):
        monkeypatch.chdir(folder)
        spec = compile_file(Path(name), PaperSource()).spec
        assert spec is not None
        hashes.add(spec.definition_hash)

    assert len(hashes) == 1


def test_a_link_that_leads_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    write(tmp_path / "secret.yaml", "default: {say: ok}\n")
    path = write(tmp_path / "agents" / "a.yaml", AGENT + "model: scripted:talk.yaml\n")
    (tmp_path / "agents" / "talk.yaml").symlink_to(tmp_path / "secret.yaml")

    assert [d.id for d in compile_file(path).diagnostics] == ["path-outside"]


def test_in_a_folder_only_agents_are_taken(tmp_path: Path) -> None:
    agents = [
        write(tmp_path / "a.yaml"),
        write(tmp_path / "broken.yaml", AGENT + "tools: [\n"),
        write(tmp_path / "flow.yaml", '{"apiVersion": "capuchin/v1"}'),
        write(tmp_path / "misspelt.yaml", AGENT.replace("apiVersion", "apiversion")),
        write(tmp_path / "other-encoding.yaml", AGENT.encode("utf-16")),
    ]
    write(tmp_path / "a.test.yaml")
    write(tmp_path / "a.policy.yaml")
    write(tmp_path / ".hidden.yaml")
    write(tmp_path / "talk.yaml", "default: {say: 'apiVersion: capuchin/v1'}\n")
    write(tmp_path / "kubernetes.yaml", "apiVersion: v1\nkind: Pod\n")
    write(tmp_path / "notes.yml")
    write(tmp_path / "prompt.yaml", "text: |\n  x\n  apiVersion: capuchin/v1\n")
    write(tmp_path / "deeper" / "b.yaml")
    (tmp_path / "folder.yaml").mkdir()

    assert find_agents([tmp_path]) == tuple(sorted(agents))


def test_a_named_file_is_taken_whatever_it_holds(tmp_path: Path) -> None:
    named = [write(tmp_path / "x.test.yaml", ""), tmp_path / "missing.yaml"]

    assert find_agents(named) == tuple(named)


def test_a_file_that_is_named_twice_is_taken_once(tmp_path: Path) -> None:
    path = write(tmp_path / "a.yaml")

    assert find_agents([tmp_path, path]) == (path,)


@pytest.mark.parametrize("locale", ["C", "C.UTF-8", "POSIX"])
def test_a_file_means_the_same_in_every_locale(tmp_path: Path, locale: str) -> None:
    path = write(tmp_path / "a.yaml", b"\xef\xbb\xbf" + AGENT.encode())
    code = (
        "import sys; from pathlib import Path; "
        "from capuchin_yaml.compiler.load import compile_file; "
        "print(compile_file(Path(sys.argv[1])).spec.definition_hash)"
    )
    env = {**os.environ, "LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONHASHSEED": "7"}
    env["PYTHONCOERCECLOCALE"] = "0"
    told = subprocess.run(
        [sys.executable, "-c", code, str(path)], env=env, capture_output=True, text=True, check=True
    )

    spec = compile_file(path).spec
    assert spec is not None
    assert told.stdout.strip() == spec.definition_hash


def test_loading_the_compiler_loads_neither_templates_nor_schemas_nor_packages() -> None:
    code = (
        "import sys; import capuchin_yaml.compiler.load, capuchin_yaml.compiler.render; "
        "heavy = {'jinja2', 'jsonschema', 'pydantic', 'importlib.metadata', 'temporalio'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert told.stdout.strip() == "[]"
