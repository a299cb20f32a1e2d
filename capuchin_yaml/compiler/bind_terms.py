"""Who decides an asked call and by when: keys of `approval` and of its rules that mean the same.

Whether the operator's config knows a group cannot be told from the file: a worker says so when it
starts, and where it does not, nobody can approve.
"""

from __future__ import annotations

from collections.abc import Mapping

from capuchin_yaml.compiler.document import Path
from capuchin_yaml.compiler.reading import Reading
from capuchin_yaml.compiler.wording import place_name
from capuchin_yaml.spec import OnTimeout, RuleSpec

BLOCK: Path = ("approval",)
TERMS = (
    "approvers",
    "quorum",
    "exclude_requester",
    "timeout",
    "on_timeout",
    "escalate_to",
    "remind",
)
SHORTEST_REMIND_S = 60.0
_ON_TIMEOUT: Mapping[str, OnTimeout] = {
    "deny": "deny",
    "wait": "wait",
    "escalate": "escalate",
    "close": "close",
}


def read_terms(reading: Reading, path: Path) -> RuleSpec:
    """The terms at the block `path`, each by itself and None where it says nothing.

    They come as those of a rule that asks, of which they are a part.
    """
    exclude = reading.node((*path, "exclude_requester"))
    quorum = reading.node((*path, "quorum"))
    remind_s = reading.duration_s((*path, "remind"))
    if remind_s is not None and remind_s < SHORTEST_REMIND_S:
        reading.error(
            "bad-duration",
            f"{place_name((*path, 'remind'))} must be a minute or more",
            (*path, "remind"),
            "write remind: 4h",
        )
    return RuleSpec(
        then="ask",
        approvers=reading.text((*path, "approvers")),
        quorum=reading.whole((*path, "quorum"), 1) if quorum is not None else None,
        exclude_requester=exclude.value is True if exclude is not None else None,
        timeout_s=reading.duration_s((*path, "timeout")),
        on_timeout=_ON_TIMEOUT.get(reading.text((*path, "on_timeout")) or ""),
        escalate_to=reading.text((*path, "escalate_to")),
        remind_s=remind_s,
    )


def check_terms(reading: Reading, path: Path, terms: RuleSpec) -> None:
    """Report what cannot be carried out, or never happens; a rule adds to what `approval` says."""
    places = (path,) if path == BLOCK else (path, BLOCK)
    has_timeout = any("timeout" in _keys(reading, place) for place in places)
    on_timeout = _said(reading, places, "on_timeout")
    if terms.on_timeout is not None and terms.on_timeout != "wait" and not has_timeout:
        reading.warning(
            "no-effect",
            f"on_timeout: {on_timeout} never happens, because {_without(path)} timeout",
            reading.document.key_span((*path, "on_timeout")),
            "add timeout: 24h",
        )
    if terms.on_timeout == "escalate" and _said(reading, places, "escalate_to") is None:
        reading.error(
            "missing-key",
            "on_timeout: escalate needs escalate_to, the group that may decide then",
            (*path, "on_timeout"),
            "add escalate_to: managers",
        )
    if terms.escalate_to is not None and on_timeout != "escalate":
        reading.warning(
            "no-effect",
            "escalate_to never happens without on_timeout: escalate",
            reading.document.key_span((*path, "escalate_to")),
            "add on_timeout: escalate",
        )


def needless_terms(reading: Reading, path: Path, then: str) -> None:
    """Report terms of a rule that asks nobody."""
    for key in TERMS:
        if key in _keys(reading, path):
            reading.warning(
                "no-effect",
                f"{key} has no effect, because the rule says {then} and asks nobody",
                reading.document.key_span((*path, key)),
                "remove the line, or write then: ask",
            )
            return


def _keys(reading: Reading, path: Path) -> Mapping[str, object]:
    node = reading.document.node(path)
    return node.entries if node is not None and node.kind == "map" else {}


def _said(reading: Reading, places: tuple[Path, ...], key: str) -> str | None:
    return next((t for p in places if (t := reading.text((*p, key))) is not None), None)


def _without(path: Path) -> str:
    return "approval has no" if path == BLOCK else "neither the rule nor approval has a"
