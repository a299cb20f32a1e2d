"""`tools` of a checked file: each reference bound to a tool of an installed package."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from capuchin_yaml.compiler.check import check_config
from capuchin_yaml.compiler.document import Path
from capuchin_yaml.compiler.nearest import certain, nearest
from capuchin_yaml.compiler.reading import Reading
from capuchin_yaml.compiler.tool_source import SourcePackage, SourceTool, ToolSource
from capuchin_yaml.compiler.wording import either, shown
from capuchin_yaml.diagnostics import Annotation, Span
from capuchin_yaml.errors import PluginUnavailable
from capuchin_yaml.spec import DEFAULT_TOOL_TIMEOUT_S, JsonValue, ToolSpec
from capuchin_yaml.terminal_text import one_line


@dataclass(frozen=True, slots=True)
class ToolUse:
    """One tool as the file names it, whether or not its package is installed."""

    identity: str
    alias: str
    span: Span
    """Where the reference stands."""
    alias_span: Span
    entry: Path
    """The entry of `tools` that names it."""


@dataclass(frozen=True, slots=True)
class ToolUses:
    """Every tool that the file names."""

    uses: tuple[ToolUse, ...]
    complete: bool
    """Whether every entry could be read."""


def bind_tools(
    reading: Reading, source: ToolSource | None
) -> tuple[tuple[ToolSpec, ...], ToolUses]:
    """The tools in the order of the file, and every use as it is written."""
    block = reading.document.node(("tools",))
    entries = block.items if block is not None else ()
    uses: list[ToolUse] = []
    complete = True
    for i in range(len(entries)):
        found = list(_uses(reading, ("tools", i)))
        complete = complete and bool(found)
        uses.extend(found)
    _report_clashes(reading, uses)
    tools: list[ToolSpec] = []
    if uses and source is not None:
        binder = _ToolBinder(reading, source)
        tools = [tool for use in uses if (tool := binder.bind(use)) is not None]
    return tuple(tools), ToolUses(tuple(uses), complete)


def _uses(reading: Reading, path: Path) -> Iterator[ToolUse]:
    node = reading.document.node(path)
    if node is None:
        return
    if node.kind == "scalar":
        if reading.checked.usable(path):
            yield _use(node.text, None, node.span, node.span, path)
        return
    use = reading.node((*path, "use"))
    if use is None:
        return
    alias = reading.text((*path, "as"))
    alias_span = reading.document.value_span((*path, "as")) if alias is not None else None
    if use.kind == "list":
        if alias is not None and len(use.items) > 1:
            reading.error(
                "alias-of-several",
                f"the alias {shown(alias)} cannot name {len(use.items)} tools",
                (*path, "as"),
                "give each tool an entry of its own",
            )
            alias = None
        packages = {item.text.partition(".")[0] for item in use.items}
        if len(packages) > 1:
            reading.error(
                "several-packages",
                f"one entry lists tools of several packages: {', '.join(sorted(packages))}",
                use.span,
                "write one entry for each package",
            )
    for item in use.items if use.kind == "list" else (use,):
        yield _use(item.text, alias, item.span, alias_span or item.span, path)


def _use(identity: str, alias: str | None, span: Span, alias_span: Span, entry: Path) -> ToolUse:
    return ToolUse(identity, alias or identity.partition(".")[2], span, alias_span, entry)


def _report_clashes(reading: Reading, uses: list[ToolUse]) -> None:
    first_by_alias: dict[str, ToolUse] = {}
    for use in uses:
        first = first_by_alias.setdefault(use.alias, use)
        if first is use:
            continue
        where = Annotation(first.alias_span, "first here")
        if first.identity == use.identity:
            reading.error(
                "listed-twice",
                f"the tool {use.identity} is here twice, first on line {first.span.line}",
                use.span,
                "keep one of them, or give one another name with as:",
                where,
            )
        else:
            reading.error(
                "alias-clash",
                f"the model would see two tools named {shown(use.alias)}: "
                f"{first.identity} (line {first.span.line}) and {use.identity}",
                use.alias_span,
                f"give one another name: as: {use.identity.replace('.', '_')[:64]}",
                where,
            )


class _ToolBinder:
    def __init__(self, reading: Reading, source: ToolSource) -> None:
        self._reading = reading
        self._source = source
        self._config_checked: set[Path] = set()

    def bind(self, use: ToolUse) -> ToolSpec | None:
        entry, _, name = use.identity.partition(".")
        package = self._package(use, entry)
        if package is None:
            return None
        config = self._config(use, entry, package)
        timeout_s = self._reading.duration_s((*use.entry, "timeout"))
        tool = package.tools.get(name)
        if tool is None:
            self._unknown_tool(use, entry, name, package)
            return None
        return self._spec(use, package, tool, config, timeout_s)

    def _spec(
        self,
        use: ToolUse,
        package: SourcePackage,
        tool: SourceTool,
        config: dict[str, JsonValue],
        timeout_s: float | None,
    ) -> ToolSpec:
        return ToolSpec(
            identity=use.identity,
            alias=use.alias,
            description=tool.description,
            input_schema=dict(tool.input_schema),
            effect=tool.effect,
            idempotent=tool.idempotent,
            needs_approval=tool.needs_approval,
            tool_version=tool.version,
            distribution=package.distribution,
            distribution_version=package.distribution_version,
            config=config,
            timeout_s=timeout_s or tool.timeout_s or DEFAULT_TOOL_TIMEOUT_S,
        )

    def _package(self, use: ToolUse, entry: str) -> SourcePackage | None:
        installed = list(self._source.entry_names())
        if entry not in installed:
            meant = nearest(entry, installed)
            slip_of = certain(entry, installed)
            self._reading.error(
                "package-not-installed",
                f"no tool package named {shown(entry)} is installed; installed: "
                f"{', '.join(sorted(set(installed))[:20]) or 'none'}",
                use.span,
                f"did you mean {meant!r}?"
                if meant is not None
                else f"the name comes from this file and is not known to us: find out which "
                f"package provides {shown(entry)} and whose it is, then type: pip install PACKAGE",
                fix=f"{slip_of}{use.identity[len(entry) :]}" if slip_of is not None else None,
            )
            return None
        try:
            return self._source.package(entry)
        except PluginUnavailable as error:
            help_ = "pip check says what the installed packages lack"
            self._reading.error("package-unavailable", one_line(str(error), 500), use.span, help_)
            return None

    def _unknown_tool(self, use: ToolUse, entry: str, name: str, package: SourcePackage) -> None:
        meant = nearest(name, package.tools)
        slip_of = certain(name, package.tools)
        # Why: a tool that destroys is named by a person, letter by letter.
        is_safe = slip_of is not None and package.tools[slip_of].effect != "destructive"
        known = [f"{entry}.{tool}" for tool in sorted(package.tools)[:4]]
        help_ = f"write {either(known)}" if known else "remove the entry"
        self._reading.error(
            "unknown-tool",
            f"{package.distribution} {package.distribution_version} has no tool {shown(name)}; "
            f"it has {', '.join(sorted(package.tools)[:20]) or 'none'}",
            use.span,
            f"did you mean '{entry}.{meant}'?" if meant is not None else help_,
            fix=f"{entry}.{slip_of}" if is_safe else None,
        )

    def _config(self, use: ToolUse, entry: str, package: SourcePackage) -> dict[str, JsonValue]:
        """The config of one entry; what is wrong with it is reported once per entry."""
        path = (*use.entry, "config")
        node = self._reading.node(path)
        value: dict[str, JsonValue] = dict(node.value) if node is not None else {}
        if use.entry in self._config_checked or not self._reading.checked.usable(path):
            return value
        self._config_checked.add(use.entry)
        schema = package.config_schema
        if schema is None:
            if value:
                self._reading.error(
                    "bad-config",
                    f"the package {entry!r} takes no config",
                    self._reading.document.key_span(path),
                    "remove config",
                )
            return value
        if node is None:
            missing = [key for key in schema.get("required", ()) if isinstance(key, str)]
            if missing:
                self._reading.error(
                    "bad-config",
                    f"the package {entry!r} needs config: {', '.join(missing)}",
                    use.span,
                    f"{{use: {use.identity}, config: {{{missing[0]}: …}}}}",
                )
            return value
        try:
            checked = check_config(self._reading.document, path, schema, f"config of {entry!r}")
        except ValueError as error:
            self._reading.error(
                "package-unavailable",
                f"{package.distribution} {package.distribution_version} describes its config "
                f"wrongly: {one_line(str(error), 300)}",
                use.span,
                "write to whoever maintains the package, or pip install another version of it",
            )
            return value
        self._reading.problems.extend(checked.diagnostics)
        return value
