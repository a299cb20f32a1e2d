"""Values of the worker's environment for one call; they never leave this process by our hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from capuchin_yaml.errors import ToolUnavailable
from capuchin_yaml.policy.needs import Grant, Need, may_have, variable_of
from capuchin_yaml.spec import JsonValue


class Secrets:
    """The variables that one call was given."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}

    @property
    def values(self) -> dict[str, str]:
        """The values given, by the names of their variables; for the scrubber."""
        return dict(self._values)

    def resolved(
        self,
        config: Mapping[str, JsonValue],
        tool: str,
        grants: Sequence[Grant],
        environ: Mapping[str, str],
    ) -> dict[str, JsonValue]:
        """The config with each `{env: NAME}` replaced by the variable's value.

        Raises:
            ToolUnavailable: the operator did not grant one, or it is not set here.
        """

        def value_of(value: JsonValue) -> JsonValue:
            name = variable_of(value)
            if name is not None:
                return self._value(name, tool, grants, environ)
            if isinstance(value, Mapping):
                return {k: value_of(v) for k, v in value.items()}
            if isinstance(value, list | tuple):
                return [value_of(v) for v in value]
            return value

        return {key: value_of(value) for key, value in config.items()}

    def _value(
        self, name: str, tool: str, grants: Sequence[Grant], environ: Mapping[str, str]
    ) -> str:
        if not may_have(Need(name, tool), grants):
            raise ToolUnavailable(
                f"the operator of this worker has not granted {name} to {tool}; "
                "there: capuchin trust PATH"
            )
        value = environ.get(name)
        if value is None:
            raise ToolUnavailable(f"{name} is not set where the worker runs")
        self._values[name] = value
        return value
