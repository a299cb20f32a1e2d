"""What the compiler asks of the installed tool packages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from capuchin_yaml.spec import Effect, JsonValue


class SourceTool(Protocol):
    """One tool of an installed package."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def input_schema(self) -> Mapping[str, JsonValue]: ...
    @property
    def effect(self) -> Effect: ...
    @property
    def idempotent(self) -> bool: ...
    @property
    def needs_approval(self) -> bool: ...
    @property
    def version(self) -> str: ...
    @property
    def timeout_s(self) -> float | None: ...


class SourcePackage(Protocol):
    """One imported tool package."""

    @property
    def distribution(self) -> str: ...
    @property
    def distribution_version(self) -> str: ...
    @property
    def tools(self) -> Mapping[str, SourceTool]: ...
    @property
    def config_schema(self) -> Mapping[str, JsonValue] | None: ...


class ToolSource(Protocol):
    """The installed tool packages, by entry point; `tools.registry.Registry` is the real one."""

    def entry_names(self) -> Sequence[str]:
        """Entry points of the group, without importing any package."""
        ...

    def package(self, entry: str) -> SourcePackage:
        """Import the package behind one entry point.

        Raises:
            PluginUnavailable: not installed, installed twice, or its import fails.
        """
        ...
