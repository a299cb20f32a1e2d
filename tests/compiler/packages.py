"""Tool packages that exist on paper only, so that a diagnostic never depends on the machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from capuchin_yaml.errors import PluginUnavailable
from capuchin_yaml.spec import Effect, JsonValue


@dataclass(frozen=True)
class PaperTool:
    name: str
    effect: Effect = "read"
    description: str = "A tool."
    input_schema: Mapping[str, JsonValue] = field(
        default_factory=lambda: {
            "type": "object",
            "properties": {"id": {"type": "string"}},
            "additionalProperties": False,
        }
    )
    idempotent: bool = False
    needs_approval: bool = False
    version: str = "1"
    timeout_s: float | None = None


@dataclass(frozen=True)
class PaperPackage:
    distribution: str
    distribution_version: str
    tools: Mapping[str, PaperTool]
    config_schema: Mapping[str, JsonValue] | None = None


class PaperSource:
    """`billing`, `sql` and `clock` are installed; `broken` is, but fails to import."""

    def __init__(self, packages: Mapping[str, PaperPackage] | None = None) -> None:
        self._packages = packages if packages is not None else _PACKAGES
        self.imported: list[str] = []

    def entry_names(self) -> tuple[str, ...]:
        return tuple(sorted((*self._packages, "broken")))

    def package(self, entry: str) -> PaperPackage:
        self.imported.append(entry)
        if entry == "broken":
            raise PluginUnavailable(
                "tool package 'broken' (capuchin-broken 0.3.0, capuchin_broken:package) cannot be "
                "imported: ModuleNotFoundError: No module named 'psycopg' (capuchin_broken.py:3)"
            )
        return self._packages[entry]


def tools(*each: PaperTool) -> dict[str, PaperTool]:
    return {tool.name: tool for tool in each}


_REFUND: Mapping[str, JsonValue] = {
    "type": "object",
    "properties": {
        "order_id": {"type": "string"},
        "amount_cents": {"type": "integer", "minimum": 1, "maximum": 1_000_000},
        "rate": {"type": "number"},
        "currency": {"type": "string", "enum": ["EUR", "USD"], "default": "USD"},
        "note": {"type": "string"},
        "lines": {"type": "array", "items": {"$ref": "#/$defs/Line"}},
        "payee": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
    },
    "required": ["order_id", "amount_cents", "rate", "lines"],
    "additionalProperties": False,
    "$defs": {
        "Line": {
            "type": "object",
            "properties": {"sku": {"type": "string"}, "qty": {"type": "integer"}},
            "required": ["sku"],
        }
    },
}

_PACKAGES = {
    "billing": PaperPackage(
        "capuchin-billing",
        "0.1.0",
        tools(
            PaperTool("lookup_order"),
            PaperTool("issue_refund", "write", input_schema=_REFUND, timeout_s=20.0),
        ),
        {
            "type": "object",
            "properties": {"currency": {"type": "string", "pattern": "^[A-Z]{3}$"}},
            "additionalProperties": False,
        },
    ),
    "sql": PaperPackage(
        "capuchin-sql",
        "2.0.0",
        tools(PaperTool("schema"), PaperTool("query", "write")),
        {
            "type": "object",
            "properties": {
                "database": {"type": "string"},
                "rows": {"type": "integer", "minimum": 1},
                "mode": {"enum": ["read", "write"]},
                "options": {"type": "array"},
            },
            "required": ["database"],
        },
    ),
    "clock": PaperPackage(
        "capuchin-clock",
        "1.0.0",
        tools(PaperTool("now", idempotent=True), PaperTool("wipe", "destructive")),
    ),
}
