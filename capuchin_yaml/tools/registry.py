"""Finds tools in installed packages, and imports a package only when an agent uses it."""

from __future__ import annotations

import difflib
import importlib
import logging
import os
import re
import threading
import traceback
import types
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from capuchin_yaml.errors import PluginUnavailable
from capuchin_yaml.spec import JsonValue
from capuchin_yaml.tools.capture import output_to_log
from capuchin_yaml.tools.definition import TOOL_NAME, TOOL_NAME_IN_WORDS, Tool, ToolPackage

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "capuchin.tools"
ENTRY_NAME = re.compile(r"[a-z0-9_-]+")

_log = logging.getLogger("capuchin_yaml.tools.packages")


@dataclass(frozen=True, slots=True)
class LoadedPackage:
    """One imported tool package."""

    entry: str
    distribution: str
    distribution_version: str
    tools: Mapping[str, Tool]
    """By name, in the order the package gives them."""
    config_schema: Mapping[str, JsonValue] | None
    """JSON Schema of a tool's `config`; None when the package takes none."""


class Registry:
    """The tool packages of this Python environment, by entry-point name.

    Nothing is imported until `package`, `find` or `suggest` needs that one package. Changed
    code of a package is seen by a new process, never by this object.
    """

    def __init__(self, entry_points: Iterable[EntryPoint], *, problems: Sequence[str] = ()) -> None:
        by_name: dict[str, list[EntryPoint]] = {}
        for entry_point in entry_points:
            if entry_point.group == GROUP:
                by_name.setdefault(entry_point.name, []).append(entry_point)
        self._entry_points = dict(sorted(by_name.items()))
        self._metadata_problems = tuple(problems)
        self._loaded: dict[str, LoadedPackage] = {}
        self._failed: dict[str, tuple[str, BaseException | None]] = {}
        self._lock = threading.RLock()

    @classmethod
    def installed(cls, path: Sequence[str] | None = None) -> Registry:
        """Read the metadata of what is installed on `path` (default: `sys.path`)."""
        entry_points, problems = _read_metadata(path)
        return cls(entry_points, problems=problems)

    def entry_names(self) -> tuple[str, ...]:
        """Names of the usable entry points, sorted; nothing is imported."""
        return tuple(name for name in self._entry_points if ENTRY_NAME.fullmatch(name))

    def distribution(self, entry: str) -> tuple[str, str]:
        """Name and version of the distribution behind an entry point; nothing is imported.

        Raises:
            PluginUnavailable: there is no such entry point, or more than one.
        """
        return _distribution(self._only(entry))

    def problems(self) -> tuple[str, ...]:
        """What is wrong with installed packages, as far as it shows without importing any."""
        found = list(self._metadata_problems)
        for name in self._entry_points:
            try:
                self._only(name)
            except PluginUnavailable as error:
                found.append(str(error))
        return tuple(found)

    def package(self, entry: str) -> LoadedPackage:
        """Import one package, once.

        Raises:
            PluginUnavailable: it is not installed, installed twice, or broken; the text names
                entry point, distribution and cause.
        """
        with self._lock:
            if entry in self._failed:
                message, cause = self._failed[entry]
                raise PluginUnavailable(message) from cause
            if entry not in self._loaded:
                try:
                    self._loaded[entry] = _load(self._only(entry))
                except PluginUnavailable as error:
                    self._failed[entry] = (str(error), error.__cause__)
                    raise
            return self._loaded[entry]

    def find(self, identity: str) -> Tool:
        """Return the tool `<entry point>.<tool>`, importing its package if need be.

        Raises:
            PluginUnavailable: there is none; the text offers what exists.
        """
        entry, dot, name = identity.partition(".")
        if not dot:
            raise PluginUnavailable(
                f"{identity!r} names no tool; write <package>.<tool>, such as "
                f"{self.suggest(identity) or 'billing.lookup_order'!r}"
            )
        package = self.package(entry)
        found = package.tools.get(name)
        if found is None:
            raise PluginUnavailable(
                f"tool package {entry!r} ({package.distribution} {package.distribution_version}) "
                f"has no tool {name!r}{_offer(name, list(package.tools), 'its tools')}"
            )
        return found

    def suggest(self, identity: str) -> str | None:
        """Return the identity of an existing tool that was probably meant, or None."""
        entry, _, name = identity.partition(".")
        if entry not in self._entry_points:
            near = difflib.get_close_matches(entry, self.entry_names(), n=1)
            if not near:
                return None
            entry = near[0]
        try:
            names = list(self.package(entry).tools)
        except PluginUnavailable:
            return None
        close = difflib.get_close_matches(name, names, n=1)
        if name in names or close:
            return f"{entry}.{name if name in names else close[0]}"
        return f"{entry}.{names[0]}" if len(names) == 1 or not name else None

    def _only(self, entry: str) -> EntryPoint:
        found = self._entry_points.get(entry, [])
        if not found:
            raise PluginUnavailable(
                f"no tool package {entry!r} is installed"
                f"{_offer(entry, list(self.entry_names()), 'installed')}"
            )
        if len(found) > 1:
            names = " and ".join(sorted({" ".join(_distribution(e)) for e in found}))
            raise PluginUnavailable(
                f"tool package {entry!r} is declared more than once, by {names}; "
                "uninstall all but one"
            )
        if not ENTRY_NAME.fullmatch(entry):
            raise PluginUnavailable(
                f"{_place(found[0])}: the entry point's name must be of a-z, 0-9, '_' and '-'"
            )
        return found[0]


def _read_metadata(path: Sequence[str] | None) -> tuple[list[EntryPoint], list[str]]:
    """Return all entry points of the group, and what could not be read, one line each."""
    import importlib.metadata as metadata

    seen: set[str] = set()
    found: list[EntryPoint] = []
    problems: list[str] = []
    distributions = (
        metadata.distributions() if path is None else metadata.distributions(path=list(path))
    )
    for distribution in distributions:
        # Why: one unreadable package must not take the others along, so all of it is guarded.
        try:
            if GROUP not in (distribution.read_text("entry_points.txt") or ""):
                continue
            name = distribution.metadata["Name"] or "unknown"
            normal = re.sub(r"[-_.]+", "-", name).lower()
            if normal not in seen:  # a later one on the path is shadowed, as for imports
                seen.add(normal)
                found += [e for e in distribution.entry_points if e.group == GROUP]
        except Exception as error:
            problems.append(
                f"the metadata of a package in {distribution.locate_file('')} cannot be read: "
                f"{type(error).__name__}: {error}"
            )
    return found, problems


def _load(entry_point: EntryPoint) -> LoadedPackage:
    place = _place(entry_point)
    try:
        with output_to_log(_log):
            declared = _import(entry_point.value)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # also SystemExit: a package must not end the program
        raise PluginUnavailable(f"{place} cannot be imported: {_cause(error)}") from error
    package = _as_package(declared, place)
    tools: dict[str, Tool] = {}
    for tool in package.tools:
        if not TOOL_NAME.fullmatch(tool.name):
            raise PluginUnavailable(
                f"{place} has a tool named {tool.name!r}; a name is {TOOL_NAME_IN_WORDS}"
            )
        if tools.setdefault(tool.name, tool) is not tool:
            raise PluginUnavailable(f"{place} has two tools named {tool.name!r}")
    if not tools:
        raise PluginUnavailable(f"{place} holds no tools; decorate functions with @tool")
    name, version = _distribution(entry_point)
    return LoadedPackage(entry_point.name, name, version, tools, package.config_schema)


def _import(value: str) -> object:
    module_name, _, attributes = value.partition("[")[0].strip().partition(":")
    found: object = importlib.import_module(module_name.strip())
    for attribute in filter(None, attributes.strip().split(".")):
        found = getattr(found, attribute)
    return found


def _as_package(declared: object, place: str) -> ToolPackage:
    match declared:
        case ToolPackage():
            return declared
        case Tool():
            return ToolPackage([declared])
        case types.ModuleType():
            unique = {id(v): v for v in vars(declared).values() if isinstance(v, Tool)}
            return ToolPackage(list(unique.values()))
        case list() | tuple() if all(isinstance(v, Tool) for v in declared):
            return ToolPackage(declared)
        case _:
            raise PluginUnavailable(
                f"{place} is {type(declared).__name__!r}; point it at a ToolPackage, a tool, "
                "a list of tools, or a module that holds tools"
            )


def _place(entry_point: EntryPoint) -> str:
    name, version = _distribution(entry_point)
    return f"tool package {entry_point.name!r} ({name} {version}, {entry_point.value})"


def _distribution(entry_point: EntryPoint) -> tuple[str, str]:
    if entry_point.dist is None:
        return "unknown distribution", "unknown"
    metadata = entry_point.dist.metadata
    return metadata["Name"] or "unknown distribution", metadata["Version"] or "unknown"


def _cause(error: BaseException) -> str:
    """Say what went wrong and where, without the frames of the import machinery."""
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, SyntaxError):
        return f"{type(error).__name__}: {error.msg} ({error.filename}:{error.lineno})"
    ours = os.path.dirname(__file__) + os.sep
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(("<frozen ", ours))
        and frame.filename != importlib.__file__
    ]
    return f"{text} ({frames[-1].filename}:{frames[-1].lineno})" if frames else text


def _offer(name: str, existing: Sequence[str], label: str) -> str:
    near = difflib.get_close_matches(name, existing, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"{hint} ({label}: {', '.join(existing) or 'none'})"
