"""The operator's floor of this machine beside what waits: what it says of a call by now.

The floor counts where the worker runs; on another machine this says what is written there.
"""

from __future__ import annotations

from capuchin_yaml.cli.output import Output


def floor_of(tool: str, alias: str) -> list[str]:
    """What the floor says of calls of this tool, one line for each of its rules about it."""
    if not _exists():
        return []
    from capuchin_yaml.compiler.operator_config import read_operator_config
    from capuchin_yaml.policy.rules import is_named

    floor = read_operator_config().floor
    said = [
        f"{rule.then}{f' when {rule.when}' if rule.when else ''}"
        f"{f': {rule.reason}' if rule.reason else ''}"
        for rule in floor.rules
        if is_named(rule, tool, alias)
    ]
    if floor.problem:
        said.append(f"ask: it cannot be used: {floor.problem}")
    return said


def tell_floor(out: Output) -> None:
    """Say that there is a floor, beside a list of what waits."""
    if not _exists():
        return
    from capuchin_yaml.compiler.operator_config import read_operator_config

    config = read_operator_config()
    if config.floor.problem:
        out.warn(f"{config.path} cannot be used, so every call asks: {config.floor.problem}")
    elif config.floor.rules:
        count = len(config.floor.rules)
        words = "1 rule" if count == 1 else f"{count} rules"
        out.tell(f"a floor of {words} counts before any of these runs: {config.path}")


def _exists() -> bool:
    from capuchin_yaml.compiler.operator_config import operator_config_path

    return operator_config_path().exists()
