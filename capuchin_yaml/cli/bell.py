"""Whether the operator of this machine wants the terminal's bell when something waits."""

from __future__ import annotations


def wants_bell() -> bool:
    """Whether a `bell` hook for opened items stands in the operator's config of this machine."""
    from capuchin_yaml.compiler.operator_config import read_operator_config

    return any(hook.bell and "opened" in hook.on for hook in read_operator_config().hooks)
