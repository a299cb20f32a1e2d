"""One agent file -> Compiled: its spec, or every reason why there is none."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from capuchin_yaml.compiler.assemble import Assembled, assemble, unknown_profile
from capuchin_yaml.compiler.bind import bind, bind_approval_alone
from capuchin_yaml.compiler.check import check
from capuchin_yaml.compiler.document import Document, read_document
from capuchin_yaml.compiler.given import check_injected, check_variables
from capuchin_yaml.compiler.nearest import nearest
from capuchin_yaml.compiler.own_files import AgentFolder, folder_of
from capuchin_yaml.compiler.rest import problems_around
from capuchin_yaml.compiler.source_text import MAX_FILE_BYTES
from capuchin_yaml.compiler.tool_source import ToolSource
from capuchin_yaml.compiler.wording import shown
from capuchin_yaml.diagnostics import Annotation, Diagnostic, Severity, Span, in_file_order
from capuchin_yaml.policy.needs import needs_of
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
    document: Document | None = field(default=None, repr=False, compare=False)
    """What the file says, with the one it extends and the chosen profile.

    Kept only for an agent that has rules or needs, whose places are shown later: a thousand of
    them take more time to hold than to read.
    """
    profiles: tuple[str, ...] = ()
    """Names of its profiles."""
    profile: str | None = None
    """The chosen one, where the file has it."""

    @property
    def sources(self) -> dict[str, str]:
        """The text of each file that a diagnostic may point into, by its path."""
        return {str(self.path): self.source, **{str(p): text for p, text in self.parts.items()}}


def compile_file(
    path: Path, registry: ToolSource | None = None, *, profile: str | None = None
) -> Compiled:
    """Compile one agent file; never raises for anything that is wrong with the file.

    Tools are looked up in `registry`, by default among the installed packages, of which only
    those that the file names are imported. A file that has profiles and not this `profile` has
    an error; one without any takes it for nothing.
    """
    try:
        data = read_bytes(path)
    except (OSError, ValueError) as error:
        return _unreadable(path, error)
    return compile_bytes(data, path, registry, profile=profile)


def compile_bytes(
    data: bytes,
    path: Path,
    registry: ToolSource | None = None,
    *,
    profile: str | None = None,
    folder: AgentFolder | None = None,
) -> Compiled:
    """Compile the content of an agent file that lies, or would lie, at `path`.

    Other files are read from `folder`, by default the one that `path` lies in.
    """
    folder = folder or AgentFolder(folder_of(path))
    document = read_document(str(path), data)
    whole = assemble(document, folder)
    found = [*document.diagnostics, *whole.diagnostics]
    names = tuple(whole.profiles)
    if names and profile is not None and profile not in names:
        found.append(unknown_profile(profile, document, names))
    if not whole.is_whole:
        # What the file lacks may stand in the one that cannot be read.
        found.extend(d for d in check(whole.document).diagnostics if d.id != "missing-key")
    if document.broken_at is not None:
        # Why the installed ones as well: their names cost nothing until a file has tools.
        found.extend(problems_around(document, registry or _installed(), folder))
    compiling = _Compiling(whole, registry, folder)
    specs = dict(compiling.specs(found)) if whole.is_whole else {}
    spec = specs.get(profile if names else None)
    if any(d.severity is Severity.ERROR for d in found):
        spec = None
    # Why: a value that an alias repeats is reported where it stands, once.
    ordered = in_file_order(list(dict.fromkeys(found)))
    chosen = None
    if spec is not None and (spec.approval.rules or needs_of(spec)):
        chosen = whole.chosen(profile if names else None)
    parts = {**whole.parts, **compiling.parts}
    named = profile if profile in names else None
    return Compiled(path, spec, ordered, document.source.text, parts, chosen, names, named)


class _Compiling:
    """One file, compiled without any profile and with each."""

    def __init__(self, whole: Assembled, registry: ToolSource | None, folder: AgentFolder) -> None:
        self._whole = whole
        self._source = registry
        self._folder = folder
        self.parts: dict[Path, str] = {}

    def specs(self, found: list[Diagnostic]) -> Iterator[tuple[str | None, AgentSpec | None]]:
        """The spec with each profile, and without any; what is wrong is added to `found`."""
        whole = self._whole
        plain = self._spec(whole.document, found)
        yield None, plain
        if plain is not None and whole.parent is not None:
            own = check(whole.parent)
            found.extend(own.diagnostics)
            before = replace(plain, approval=bind_approval_alone(whole.parent, own, plain.tools))
            told = "in the file that it extends"
            found.extend(_loosened(before, whole.parent, plain, whole.document, told))
        for name, document in whole.profiles.items():
            with_it: list[Diagnostic] = []
            spec = self._spec(document, with_it)
            patch = whole.patches[name]
            said = {(d.id, d.span, d.message) for d in found}
            for diagnostic in with_it:
                if (diagnostic.id, diagnostic.span, diagnostic.message) in said:
                    continue
                if not _is_inside(diagnostic.span, patch):
                    message = f"{diagnostic.message} (with the profile {name})"
                    diagnostic = replace(diagnostic, message=message)
                found.append(diagnostic)
            if plain is not None and spec is not None:
                before = replace(spec, approval=plain.approval)
                told = "without the profile"
                found.extend(_loosened(before, whole.document, spec, document, told))
            yield name, spec

    def _spec(self, document: Document, found: list[Diagnostic]) -> AgentSpec | None:
        checked = check(document)
        if self._source is None and document.node(("tools",)) is not None:
            self._source = _installed()
        bound = bind(document, checked, self._source, self._folder)
        self.parts.update(bound.parts)
        found.extend((*checked.diagnostics, *bound.diagnostics))
        return bound.spec


def _is_inside(inner: Span, outer: Span) -> bool:
    ends = (inner.end_line, inner.end_column) <= (outer.end_line, outer.end_column)
    starts = (outer.line, outer.column) <= (inner.line, inner.column)
    return inner.path == outer.path and starts and ends


def _loosened(
    before: AgentSpec, below: Document, after: AgentSpec, document: Document, told: str
) -> Iterator[Diagnostic]:
    """A warning where an approval lets calls run that the one below it held back."""
    from capuchin_yaml.policy.gating import loosened

    tools = loosened(before, after)
    if tools:
        yield Diagnostic(
            "approval-loosened",
            Severity.WARNING,
            f"approval is looser than {told}: calls of {', '.join(tools)} run alone, or need "
            "fewer people",
            document.key_span(("approval",)),
            "capuchin plan shows what runs alone now",
            (Annotation(below.key_span(("approval",)), "this is stricter"),)
            if below.node(("approval",)) is not None
            else (),
        )


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
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if entry.name.endswith(".yaml"))
    except OSError:
        # It stays, so that compiling it says why it cannot be read.
        return [folder]
    return [child for name in names if _is_agent(child := folder / name)]


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _is_agent(path: Path) -> bool:
    if path.name.endswith(_NEVER_AGENTS) or path.name.startswith("."):
        return False
    try:
        data = read_bytes(path)
    except OSError as error:
        # It may be one unless it is a folder, a device or a link to nothing; compiling it says
        # why it cannot be read.
        return error.errno not in (errno.EINVAL, errno.ENOENT)
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    return _AGENT_LINE.search(data.decode(encoding, "replace")) is not None


def read_bytes(path: Path) -> bytes:
    """The content of a plain file, and of one that is too large to compile its beginning.

    Raises:
        OSError: it cannot be read, or is no plain file.
    """
    mode = os.stat(path).st_mode
    # Why: a device or a pipe would be read for ever.
    if not stat.S_ISREG(mode):
        is_folder = stat.S_ISDIR(mode)
        if is_folder:
            next(path.iterdir(), None)  # a folder that may not be read says so first
        raise OSError(errno.EINVAL, "it is a folder" if is_folder else "it is no plain file")
    with path.open("rb") as file:
        return file.read(MAX_FILE_BYTES + 1)


def _unreadable(path: Path, error: OSError | ValueError) -> Compiled:
    start = Span(str(path), 1, 1, 1, 1)
    help_ = "name an agent.yaml, or a folder that holds agents"
    match error:
        case FileNotFoundError():
            problem = "there is no such file"
            help_ = _near(path) or help_
        case PermissionError():
            problem = "this user may not read it"
            help_ = f"chmod u+r {shown(str(path))}"
        case OSError() if error.strerror:
            problem = error.strerror
        case _:
            problem = str(error)
    message = f"the agent file cannot be read: {problem}"
    problem_ = Diagnostic("unreadable", Severity.ERROR, message, start, help_)
    return Compiled(path, None, (problem_,), "")


def _near(path: Path) -> str | None:
    try:
        names = [p.name for p in path.parent.iterdir() if p.suffix == ".yaml" or p.is_dir()]
    except (OSError, ValueError):
        return None
    meant = nearest(path.name, names)
    return f"did you mean {str(path.parent / meant)!r}?" if meant is not None else None


def _installed() -> ToolSource:
    from capuchin_yaml.tools.registry import Registry

    return Registry.installed()
