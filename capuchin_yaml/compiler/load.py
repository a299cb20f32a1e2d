"""One agent file -> Compiled: its spec, or every reason why there is none."""

from __future__ import annotations

import errno
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from capuchin_yaml.compiler.bind import bind
from capuchin_yaml.compiler.check import check
from capuchin_yaml.compiler.document import read_document
from capuchin_yaml.compiler.given import check_injected, check_variables
from capuchin_yaml.compiler.source_text import MAX_FILE_BYTES
from capuchin_yaml.compiler.tool_source import ToolSource
from capuchin_yaml.diagnostics import Diagnostic, Severity, Span, in_file_order
from capuchin_yaml.spec import AgentSpec

__all__ = [
    "Compiled",
    "check_injected",
    "check_variables",
    "compile_bytes",
    "compile_file",
    "find_agents",
]

_NEVER_AGENTS = (".test.yaml", ".policy.yaml")
# Why: a file whose YAML is broken is still an agent, so the words are looked for in its text.
_AGENT_KEY = r"""["']?api[_-]?version["']?\s*:\s*["']?capuchin/"""
_AGENT_LINE = re.compile(rf"^{_AGENT_KEY}|\A\s*\{{.*?{_AGENT_KEY}", re.I | re.M | re.S)


@dataclass(frozen=True, slots=True)
class Compiled:
    """What one agent file became."""

    path: Path
    spec: AgentSpec | None
    """None as soon as there is one error."""
    diagnostics: tuple[Diagnostic, ...]
    """Everything found, in file order."""
    source: str
    """The file's text, for excerpts; empty when it could not be read."""
    parts: Mapping[Path, str] = field(default_factory=dict)
    """Other files that the agent is made of, with their text."""

    @property
    def sources(self) -> dict[str, str]:
        """The text of each file that a diagnostic may point into, by its path."""
        return {str(self.path): self.source, **{str(p): text for p, text in self.parts.items()}}


def compile_file(path: Path, registry: ToolSource | None = None) -> Compiled:
    """Compile one agent file; never raises for anything that is wrong with the file.

    Tools are looked up in `registry`, by default among the installed packages, of which only
    those that the file names are imported.
    """
    try:
        data = _read(path)
    except (OSError, ValueError) as error:
        return _unreadable(path, error)
    return compile_bytes(data, path, registry)


def compile_bytes(data: bytes, path: Path, registry: ToolSource | None = None) -> Compiled:
    """Compile the content of an agent file that lies, or would lie, at `path`."""
    document = read_document(str(path), data)
    checked = check(document)
    source = registry
    if source is None and document.node(("tools",)) is not None:
        source = _installed()
    bound = bind(document, checked, source, path.parent)
    found = [*document.diagnostics, *checked.diagnostics, *bound.diagnostics]
    # Why: a value that an alias repeats is reported where it stands, once.
    ordered = in_file_order(list(dict.fromkeys(found)))
    return Compiled(path, bound.spec, ordered, document.source.text, bound.parts)


def find_agents(paths: Sequence[Path]) -> tuple[Path, ...]:
    """The agent files that `paths` mean: a file is itself, a folder every agent in it.

    In a folder, an agent is a `*.yaml` whose top has `apiVersion: capuchin/…`; `*.test.yaml`
    and `*.policy.yaml` never are. A path that does not exist stays, so that compiling it says so.
    """
    found: list[Path] = []
    for path in paths:
        found.extend(_agents_in(path) if _is_folder(path) else [path])
    return tuple(dict.fromkeys(found))


def _agents_in(folder: Path) -> list[Path]:
    try:
        children = sorted(folder.iterdir())
    except OSError:
        # It stays, so that compiling it says why it cannot be read.
        return [folder]
    return [child for child in children if child.suffix == ".yaml" and _is_agent(child)]


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _is_agent(path: Path) -> bool:
    if path.name.endswith(_NEVER_AGENTS) or path.name.startswith(".") or not path.is_file():
        return False
    try:
        data = _read(path)
    except OSError:
        # It may be one; compiling it says why it cannot be read.
        return True
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    return _AGENT_LINE.search(data.decode(encoding, "replace")) is not None


def _read(path: Path) -> bytes:
    # Why: a device or a pipe would be read for ever.
    if path.exists() and not path.is_file():
        if path.is_dir():
            next(path.iterdir(), None)  # a folder that may not be read says so first
        raise OSError(errno.EINVAL, "it is a folder" if path.is_dir() else "it is no plain file")
    with path.open("rb") as file:
        return file.read(MAX_FILE_BYTES + 1)


def _unreadable(path: Path, error: OSError | ValueError) -> Compiled:
    start = Span(str(path), 1, 1, 1, 1)
    match error:
        case FileNotFoundError():
            problem = "there is no such file"
        case PermissionError():
            problem = "this user may not read it"
        case OSError() if error.strerror:
            problem = error.strerror
        case _:
            problem = str(error)
    message = f"the agent file cannot be read: {problem}"
    return Compiled(path, None, (Diagnostic("unreadable", Severity.ERROR, message, start),), "")


def _installed() -> ToolSource:
    from capuchin_yaml.tools.registry import Registry

    return Registry.installed()
