"""What a conversation did so far with each tool, as rules may count it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from capuchin_yaml.spec import JsonValue


@dataclass(frozen=True, slots=True)
class Tally:
    """Calls of one tool, and the sums of its numeric arguments."""

    calls: int = 0
    total: Mapping[str, int | float] = field(default_factory=dict)
    """By the name of a top-level argument."""

    def with_call(self, schema: Mapping[str, JsonValue], arguments: JsonValue) -> Tally:
        """The tally after one more call; only arguments that the schema declares are summed."""
        total = dict(self.total)
        properties = schema.get("properties")
        for name in properties if isinstance(properties, Mapping) else ():
            value = arguments.get(name) if isinstance(arguments, Mapping) else None
            if isinstance(value, int | float) and not isinstance(value, bool):
                total[name] = total.get(name, 0) + value
        return Tally(self.calls + 1, total)

    def to_json(self) -> dict[str, JsonValue]:
        """As history carries it."""
        return {"calls": self.calls, "total": dict(self.total)}


def tally_from_json(value: JsonValue) -> Tally:
    """Read what `Tally.to_json` wrote; anything else is no call at all."""
    if not isinstance(value, Mapping):
        return Tally()
    return Tally(int(value.get("calls", 0)), dict(value.get("total", {})))
