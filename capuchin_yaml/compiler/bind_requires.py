"""`requires` of a checked file: versions of capuchin and of packages it is written for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capuchin_yaml import __version__
from capuchin_yaml.compiler.bind_tools import ToolUses
from capuchin_yaml.compiler.document import Path
from capuchin_yaml.compiler.nearest import nearest
from capuchin_yaml.compiler.reading import Reading
from capuchin_yaml.compiler.tool_source import ToolSource
from capuchin_yaml.compiler.wording import shown
from capuchin_yaml.errors import PluginUnavailable

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet


def bind_requires(reading: Reading, uses: ToolUses, source: ToolSource | None) -> None:
    """Report each range that is not met here; nothing of it is part of the spec."""
    path: Path = ("requires", "capuchin")
    wanted = _range(reading, path)
    if wanted is not None and not wanted.contains(__version__, prereleases=True):
        _not_met(reading, path, "capuchin-yaml", __version__)
    block = reading.node(("requires", "packages"))
    entries = {use.identity.partition(".")[0] for use in uses.uses}
    for entry in block.entries if block is not None else ():
        path = ("requires", "packages", entry)
        wanted = _range(reading, path)
        if entry not in entries and uses.complete:
            meant = nearest(entry, entries)
            reading.error(
                "names-no-tool",
                f"requires names the package {shown(entry)}, of which the agent uses no tool",
                reading.document.key_span(path),
                f"did you mean {meant!r}?" if meant is not None else "remove the line",
            )
        elif wanted is not None and source is not None and entry in source.entry_names():
            _check_package(reading, path, entry, wanted, source)


def _check_package(
    reading: Reading, path: Path, entry: str, wanted: SpecifierSet, source: ToolSource
) -> None:
    from packaging.version import InvalidVersion, Version

    try:
        package = source.package(entry)
        here = Version(package.distribution_version)
    except PluginUnavailable:
        return  # it is reported where the tool is named
    except InvalidVersion:
        reading.error(
            "version-not-met",
            f"{package.distribution} has the version {shown(package.distribution_version)}, "
            "which no range can be compared with",
            path,
            "remove the line",
        )
        return
    if not wanted.contains(here, prereleases=True):
        _not_met(reading, path, package.distribution, package.distribution_version)


def _range(reading: Reading, path: Path) -> SpecifierSet | None:
    text = reading.text(path)
    if text is None:
        return None
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        return SpecifierSet(text)
    except InvalidSpecifier:
        reading.error(
            "bad-range",
            f"{shown(text)} is no range of versions such as >=1.2,<2",
            path,
            'write it like ">=1.2,<2"',
        )
        return None


def _not_met(reading: Reading, path: Path, distribution: str, here: str) -> None:
    wanted = reading.text(path)
    reading.error(
        "version-not-met",
        f"{distribution} {here} is installed, the agent is written for {wanted}",
        path,
        f'pip install "{distribution}{wanted}"',
    )
