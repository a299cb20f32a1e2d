"""Tool packages are found by metadata, imported only when used, and fail one at a time."""

from __future__ import annotations

import importlib.metadata
import logging
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from capuchin_yaml.errors import PluginUnavailable
from capuchin_yaml.tools.registry import Registry
from tests.tools.distributions import TOOL_SOURCE, importable, install


def unavailable(registry: Registry, identity: str) -> str:
    """The text of the refusal to find a tool."""
    with pytest.raises(PluginUnavailable) as refused:
        registry.find(identity)
    return str(refused.value)


def test_a_tool_is_found_by_entry_point_and_name(tmp_path: Path) -> None:
    install(
        tmp_path,
        "Acme-Hello",
        entries={"acme": "acme_tools"},
        modules={"acme_tools.py": TOOL_SOURCE},
    )

    with importable(tmp_path) as registry:
        assert registry.find("acme.hello").effect == "read"
        assert registry.distribution("acme") == ("Acme-Hello", "1.0")
        assert registry.entry_names() == ("acme",)
        assert registry.problems() == ()


def test_an_unused_package_is_never_imported(tmp_path: Path) -> None:
    slow = "import time\nraise SystemExit('imported')\n"
    install(tmp_path, "slow", entries={"slow": "slow_b"}, modules={"slow_b.py": slow})
    install(
        tmp_path, "acme", entries={"acme": "acme_tools"}, modules={"acme_tools.py": TOOL_SOURCE}
    )

    with importable(tmp_path) as registry:
        registry.find("acme.hello")
        registry.distribution("slow")
        registry.problems()
        registry.suggest("acme.helo")

        assert registry.entry_names() == ("acme", "slow")
        assert "slow_b" not in sys.modules


def test_a_package_is_imported_once(tmp_path: Path) -> None:
    install(
        tmp_path, "acme", entries={"acme": "acme_tools"}, modules={"acme_tools.py": TOOL_SOURCE}
    )

    with importable(tmp_path) as registry:
        assert registry.package("acme") is registry.package("acme")


def test_threads_that_need_a_package_at_once_import_it_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = "import logging\nlogging.getLogger('acme').warning('ran')\n" + TOOL_SOURCE
    install(tmp_path, "acme", entries={"acme": "acme_tools"}, modules={"acme_tools.py": source})

    with importable(tmp_path) as registry, ThreadPoolExecutor(8) as pool:
        found = set(pool.map(registry.find, ["acme.hello"] * 32))

    assert len(found) == 1
    assert caplog.messages == ["ran"]


@pytest.mark.parametrize(
    ("source", "target", "cause"),
    [
        ("import not_installed_anywhere", "m", "ModuleNotFoundError: No module named 'not_ins"),
        ("\nx = (", "m", "SyntaxError: '(' was never closed"),
        ("import sys\nsys.exit(3)", "m", "SystemExit: 3"),
        ("raise GeneratorExit", "m", "GeneratorExit"),
        ("import asyncio\nraise asyncio.CancelledError('x')", "m", "CancelledError: x"),
        ("1 / 0", "m", "ZeroDivisionError: division by zero"),
        ("x = 1", "m:missing", "AttributeError: module"),
        ("x = 1", "m:x.y.z", "AttributeError: 'int' object has no attribute 'y'"),
        ("x = 1", "m_not_there", "ModuleNotFoundError: No module named"),
        ("x = 1", "", "ValueError: Empty module name"),
    ],
)
def test_a_broken_package_is_named_with_its_cause(
    tmp_path: Path, source: str, target: str, cause: str
) -> None:
    module = "broken_tools"
    value = target.replace("m", module, 1)
    install(
        tmp_path, "acme-broken", entries={"broken": value}, modules={f"{module}.py": source + "\n"}
    )
    install(
        tmp_path, "acme", entries={"acme": "acme_tools"}, modules={"acme_tools.py": TOOL_SOURCE}
    )

    with importable(tmp_path) as registry:
        text = unavailable(registry, "broken.hello")

        assert text.startswith(f"tool package 'broken' (acme-broken 1.0, {value})")
        assert cause in text
        assert registry.find("acme.hello").name == "hello"


def test_the_cause_names_the_line_of_the_package_that_failed(tmp_path: Path) -> None:
    source = "def inner():\n    import not_installed_anywhere\n\ninner()\n"
    install(tmp_path, "acme", entries={"acme": "acme_tools"}, modules={"acme_tools.py": source})

    with importable(tmp_path) as registry:
        assert unavailable(registry, "acme.hello").endswith(f"({tmp_path / 'acme_tools.py'}:2)")


def test_a_bad_declaration_names_the_line_of_the_function(tmp_path: Path) -> None:
    source = "from capuchin_yaml.tools.api import tool\n\n@tool\ndef go(x):\n    '''Go.'''\n"
    install(tmp_path, "acme", entries={"acme": "acme_tools"}, modules={"acme_tools.py": source})

    with importable(tmp_path) as registry:
        text = unavailable(registry, "acme.go")

    assert "parameter 'x' has no type hint" in text
    assert f"({tmp_path / 'acme_tools.py'}:" in text


def test_a_failed_import_is_not_tried_again_and_keeps_its_cause(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = "import logging\nlogging.getLogger('acme').warning('ran')\n1 / 0\n"
    install(tmp_path, "acme", entries={"acme": "acme_tools"}, modules={"acme_tools.py": source})

    with importable(tmp_path) as registry:
        first = unavailable(registry, "acme.x")
        with pytest.raises(PluginUnavailable) as refused:
            registry.package("acme")

    assert caplog.messages == ["ran"]
    assert str(refused.value) == first
    assert isinstance(refused.value.__cause__, ZeroDivisionError)


def test_an_interrupt_during_import_ends_the_program(tmp_path: Path) -> None:
    source = "raise KeyboardInterrupt\n"
    install(tmp_path, "acme", entries={"acme": "acme_tools"}, modules={"acme_tools.py": source})

    with importable(tmp_path) as registry, pytest.raises(KeyboardInterrupt):
        registry.package("acme")


@pytest.mark.parametrize("order", [("one", "two"), ("two", "one")])
def test_two_distributions_with_one_entry_name_are_both_named(
    tmp_path: Path, order: tuple[str, str]
) -> None:
    folders = []
    for name in order:
        folders.append(tmp_path / name)
        modules = {f"acme_{name}.py": TOOL_SOURCE}
        install(folders[-1], f"acme-{name}", entries={"acme": f"acme_{name}"}, modules=modules)
    install(tmp_path / "one", "other", entries={"other": "acme_one"})

    with importable(*folders) as registry:
        text = unavailable(registry, "acme.hello")

        assert "acme-one 1.0 and acme-two 1.0" in text
        assert registry.find("other.hello").name == "hello"
        assert registry.problems() == (text,)


def test_a_distribution_found_twice_on_the_path_counts_once(tmp_path: Path) -> None:
    for folder, version in (("first", "2.0"), ("second", "1.0")):
        install(
            tmp_path / folder,
            "Acme_Hello" if folder == "first" else "acme-hello",
            entries={"acme": "acme_tools"},
            modules={"acme_tools.py": TOOL_SOURCE},
            version=version,
        )

    with importable(tmp_path / "first", tmp_path / "second") as registry:
        assert registry.distribution("acme") == ("Acme_Hello", "2.0")


def test_unreadable_metadata_of_one_package_leaves_the_others_usable(tmp_path: Path) -> None:
    install(
        tmp_path, "acme", entries={"acme": "acme_tools"}, modules={"acme_tools.py": TOOL_SOURCE}
    )
    install(tmp_path, "bad", entries={"bad": "x"})
    (tmp_path / "bad-1.0.dist-info" / "entry_points.txt").write_text("[capuchin.tools]\nno sign\n")
    install(tmp_path, "latin", entries={"latin": "x"})
    (tmp_path / "latin-1.0.dist-info" / "entry_points.txt").write_bytes(b"[capuchin.tools]\n\xff")

    with importable(tmp_path) as registry:
        assert registry.find("acme.hello").name == "hello"
        assert len(registry.problems()) == 2


def test_a_package_without_metadata_has_an_unknown_version(tmp_path: Path) -> None:
    install(
        tmp_path, "acme", entries={"acme": "acme_tools"}, modules={"acme_tools.py": TOOL_SOURCE}
    )
    (tmp_path / "acme-1.0.dist-info" / "METADATA").write_text("Name: acme\n")

    with importable(tmp_path) as registry:
        assert registry.distribution("acme") == ("acme", "unknown")


@pytest.mark.parametrize("entry", ["Acme", "ac me", "ac.me"])
def test_an_entry_name_that_no_file_could_write_is_refused_when_used(
    tmp_path: Path, entry: str
) -> None:
    install(tmp_path, "acme", entries={entry: "acme_tools"}, modules={"acme_tools.py": TOOL_SOURCE})

    with importable(tmp_path) as registry:
        assert registry.entry_names() == ()
        with pytest.raises(PluginUnavailable, match=r"acme 1\.0"):
            registry.package(entry)


@pytest.mark.parametrize(
    "name", ["get.weather", "my tool", "x" * 70, "naïve", "", "a/b", "tool\n", "🛠"]
)
def test_a_tool_name_that_a_model_cannot_be_given_is_refused(tmp_path: Path, name: str) -> None:
    source = TOOL_SOURCE.replace("@tool(", f"@tool(name={name!r}, ")
    module = "acme_tools"
    install(tmp_path, "acme-names", entries={"acme": module}, modules={f"{module}.py": source})

    with importable(tmp_path) as registry:
        text = unavailable(registry, "acme.hello")

    assert "tool package 'acme' (acme-names 1.0" in text
    assert repr(name) in text


def test_a_name_that_was_slipped_past_the_decorator_is_refused_too(tmp_path: Path) -> None:
    source = (
        TOOL_SOURCE + "import dataclasses\nhello = dataclasses.replace(hello, name='get.weather')"
    )
    install(tmp_path, "acme", entries={"acme": "acme_tools"}, modules={"acme_tools.py": source})

    with importable(tmp_path) as registry:
        assert "has a tool named 'get.weather'" in unavailable(registry, "acme.hello")


def test_two_tools_of_one_name_in_a_package_are_refused(tmp_path: Path) -> None:
    source = TOOL_SOURCE + TOOL_SOURCE.replace("def hello", "def other").replace(
        "@tool(", "@tool(name='hello', "
    )
    install(tmp_path, "acme", entries={"acme": "acme_tools"}, modules={"acme_tools.py": source})

    with importable(tmp_path) as registry:
        assert "has two tools named 'hello'" in unavailable(registry, "acme.hello")


@pytest.mark.parametrize(
    ("target", "addition"),
    [
        ("", ""),
        (":hello", ""),
        (":both", "both = [hello]"),
        (":both", "both = (hello,)"),
        (
            ":package",
            "from capuchin_yaml.tools.api import ToolPackage\npackage = ToolPackage([hello])",
        ),
        ("", "again = hello"),
    ],
)
def test_an_entry_point_may_be_a_package_a_module_a_tool_or_a_list(
    tmp_path: Path, target: str, addition: str
) -> None:
    module = "acme_tools"
    install(
        tmp_path,
        "acme",
        entries={"acme": module + target},
        modules={f"{module}.py": TOOL_SOURCE + addition},
    )

    with importable(tmp_path) as registry:
        assert list(registry.package("acme").tools) == ["hello"]


@pytest.mark.parametrize("addition", ["thing = 3", "thing = [hello, 3]", "thing = hello.function"])
def test_an_entry_point_that_is_nothing_of_the_kind_is_refused(
    tmp_path: Path, addition: str
) -> None:
    module = "acme_tools"
    modules = {f"{module}.py": TOOL_SOURCE + addition}
    install(tmp_path, "acme", entries={"acme": f"{module}:thing"}, modules=modules)

    with importable(tmp_path) as registry:
        assert "point it at a ToolPackage" in unavailable(registry, "acme.hello")


def test_a_module_without_tools_is_refused(tmp_path: Path) -> None:
    install(tmp_path, "acme", entries={"acme": "acme_tools"}, modules={"acme_tools.py": "x = 1\n"})

    with importable(tmp_path) as registry:
        assert "holds no tools" in unavailable(registry, "acme.hello")


def test_what_a_package_prints_at_import_goes_to_the_log(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    source = (
        "import sys, logging\n"
        "print('on stdout')\nprint('on stderr', file=sys.stderr)\n"
        "sys.stdout.reconfigure(errors='replace')\nsys.stdout.buffer.write(b'raw \\xff\\n')\n"
        "assert not sys.stdout.isatty()\nprint('no newline', end='')\n" + TOOL_SOURCE
    )
    install(tmp_path, "acme", entries={"acme": "acme_tools"}, modules={"acme_tools.py": source})

    with importable(tmp_path) as registry, caplog.at_level(logging.INFO):
        registry.package("acme")

    assert caplog.messages == ["on stdout", "on stderr", "raw \\xff", "no newline"]
    assert capfd.readouterr() == ("", "")


def test_a_log_handler_that_a_package_makes_at_import_does_not_go_round_in_circles(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = (
        "import sys, logging\nhandler = logging.StreamHandler(sys.stderr)\n"
        "logging.getLogger('capuchin_yaml.tools.packages').addHandler(handler)\n"
        "print('hello from import')\n" + TOOL_SOURCE
    )
    install(tmp_path, "acme", entries={"acme": "acme_tools"}, modules={"acme_tools.py": source})

    with importable(tmp_path) as registry, caplog.at_level(logging.INFO):
        registry.package("acme")
        log = logging.getLogger("capuchin_yaml.tools.packages")
        log.info("later")
        log.removeHandler(sys.modules["acme_tools"].handler)

    assert caplog.messages.count("later") <= 2


def test_a_package_cannot_set_up_the_programs_logging(tmp_path: Path) -> None:
    source = "import logging\nlogging.basicConfig(level=1, force=True)\n" + TOOL_SOURCE
    install(tmp_path, "acme", entries={"acme": "acme_tools"}, modules={"acme_tools.py": source})
    root = logging.getLogger()
    before = root.handlers[:], root.level

    with importable(tmp_path) as registry:
        registry.package("acme")

    assert (root.handlers, root.level) == before


@pytest.mark.parametrize(
    ("identity", "said", "suggested"),
    [
        ("acme.helo", "did you mean 'hello'?", "acme.hello"),
        ("acne.hello", "did you mean 'acme'?", "acme.hello"),
        ("acme.zzz", "its tools: hello, wave", None),
        ("zzz.hello", "(installed: acme)", None),
        ("acme", "write <package>.<tool>, such as 'acme.hello'", "acme.hello"),
        ("hello", "write <package>.<tool>", None),
        ("acme.", "has no tool ''", "acme.hello"),
        (".hello", "no tool package '' is installed", None),
        ("", "names no tool", None),
        ("acme.hello.more", "has no tool 'hello.more'", "acme.hello"),
    ],
)
def test_a_missing_tool_is_answered_with_what_exists(
    tmp_path: Path, identity: str, said: str, suggested: str | None
) -> None:
    module = "acme_tools"
    source = TOOL_SOURCE + TOOL_SOURCE.replace("def hello", "def wave")
    install(tmp_path, "acme", entries={"acme": module}, modules={f"{module}.py": source})

    with importable(tmp_path) as registry:
        assert said in unavailable(registry, identity)
        assert registry.suggest(identity) == suggested


def test_no_package_at_all_is_said_so() -> None:
    registry = Registry([])

    assert unavailable(registry, "acme.hello").endswith("(installed: none)")
    assert registry.entry_names() == ()


def test_an_entry_point_without_a_distribution_still_works(tmp_path: Path) -> None:
    (tmp_path / "acme_tools.py").write_text(TOOL_SOURCE)
    entry_point = importlib.metadata.EntryPoint("acme", "acme_tools", "capuchin.tools")

    with importable(tmp_path):
        package = Registry([entry_point]).package("acme")

    assert (package.distribution, package.distribution_version) == (
        "unknown distribution",
        "unknown",
    )


def test_entry_points_of_other_groups_are_left_alone() -> None:
    other = importlib.metadata.EntryPoint("acme", "acme_tools", "console_scripts")

    assert Registry([other]).entry_names() == ()


def test_importing_the_registry_imports_neither_pydantic_nor_metadata() -> None:
    code = (
        "import sys, capuchin_yaml.tools.registry, capuchin_yaml.tools.api\n"
        "print([m for m in ('pydantic', 'importlib.metadata', 'asyncio') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_a_package_that_resolves_paths_and_reads_the_environment_loads(tmp_path: Path) -> None:
    source = (
        "import os, pathlib\nHERE = pathlib.Path('.').resolve()\nHOME = os.environ.get('HOME')\n"
        + TOOL_SOURCE
    )
    install(tmp_path, "acme", entries={"acme": "acme_tools"}, modules={"acme_tools.py": source})

    with importable(tmp_path) as registry:
        assert registry.find("acme.hello").name == "hello"
