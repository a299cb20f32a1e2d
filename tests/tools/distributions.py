"""Installs small real distributions into a folder: modules beside a hand-written dist-info."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from capuchin_yaml.tools.registry import Registry

TOOL_SOURCE = '''
from capuchin_yaml.tools.api import tool

@tool(effect="read")
def hello(name: str) -> str:
    """Greet somebody.

    Args:
        name: Who.
    """
    return f"hello {name}"
'''


def install(
    folder: Path,
    name: str,
    *,
    entries: Mapping[str, str],
    modules: Mapping[str, str] | None = None,
    version: str = "1.0",
) -> None:
    """Put a distribution into `folder`; `entries` are its entry points, `modules` its files."""
    dist_info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    dist_info.mkdir(parents=True)
    (dist_info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", encoding="utf-8"
    )
    lines = ["[capuchin.tools]", *(f"{entry} = {value}" for entry, value in entries.items())]
    (dist_info / "entry_points.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for file, source in (modules or {}).items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")


@contextmanager
def importable(*folders: Path) -> Iterator[Registry]:
    """A registry over the folders, whose modules can be imported meanwhile."""
    before = set(sys.modules)
    sys.path[:0] = [str(f) for f in folders]
    try:
        yield Registry.installed([str(f) for f in folders])
    finally:
        del sys.path[: len(folders)]
        for module in set(sys.modules) - before:
            file = getattr(sys.modules[module], "__file__", None) or ""
            if any(Path(file).is_relative_to(f) for f in folders):
                del sys.modules[module]
