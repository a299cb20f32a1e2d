"""Keys that the schema does not know: what was meant, and where it belongs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from capuchin_yaml.compiler.document import Path
from capuchin_yaml.compiler.nearest import certain, nearest
from capuchin_yaml.compiler.wording import either, place_name, resolved, shown
from capuchin_yaml.compiler.words import (
    LATER_KEYS,
    OPERATOR_CONFIG,
    OPERATOR_KEYS,
    SAME_VALUE,
    Place,
    foreign_words,
    our_word,
)
from capuchin_yaml.spec import JsonValue

Schema: TypeAlias = Mapping[str, JsonValue]


_UNTIL_LATER = "leave it out until a version that does"


@dataclass(frozen=True, slots=True)
class UnknownKey:
    """What to say of one unknown key."""

    id: str
    message: str
    help: str | None
    stands_for: str | None = None
    """The key of the same map that was probably meant."""
    rename: str | None = None
    """The key of the same map that was certainly meant."""


def unknown_key(
    schema: Schema, subject: str, path: Path, key: str, known: Mapping[str, JsonValue]
) -> UnknownKey:
    """Explain `key`, found in the map at `path` whose keys are `known`."""
    owner = place_name(path) if path or subject == "agent" else subject
    message = f"{owner} has no key {shown(key)}"
    if subject != "agent":
        help_ = _did_you_mean(nearest(key, known), known)
        return UnknownKey("unknown-key", message, help_, rename=certain(key, known))
    place = place_of(path)
    later = _later_place(place, key)
    if later is not None:
        return UnknownKey(
            "later-key",
            f"this version does not carry out {shown(key)} of {later} yet",
            _UNTIL_LATER,
            "use" if place == "tools[]" and key == "agent" else None,
        )
    if key in OPERATOR_KEYS:
        return UnknownKey(
            "operator-key",
            f"{shown(key)} is the operator's to decide ({OPERATOR_KEYS[key]}), never the agent's",
            f"write it in {OPERATOR_CONFIG} of the machine where the worker runs",
        )
    ours = our_word(place, key)
    if ours is not None:
        return _foreign(place, key, message, ours)
    elsewhere = [other for other, keys in _keys_by_place(schema).items() if key in keys]
    if elsewhere:
        return UnknownKey(
            "unknown-key",
            f"{message}; it belongs {either([_place_words(other) for other in elsewhere])}",
            f"move it {either([_place_words(other, 'to') for other in elsewhere])}",
        )
    meant = nearest(key, known)
    if meant is None:
        foreign = nearest(key, foreign_words(place))
        if foreign is not None:
            said = f"{message}; {foreign!r} would be called {our_word(place, foreign)} here"
            head = str(our_word(place, foreign)).partition(": ")[0]
            return UnknownKey("unknown-key", said, f"write {head}: …", head.split(".", 1)[0])
        meant_elsewhere = our_word("", key)
        if meant_elsewhere is not None:
            return UnknownKey(
                "unknown-key",
                message,
                f"write {meant_elsewhere.partition(': ')[0]} at the top of the file",
            )
    slip_of = certain(key, known)
    return UnknownKey("unknown-key", message, _did_you_mean(meant, known), meant, slip_of)


def _foreign(place: Place, key: str, message: str, ours: str) -> UnknownKey:
    """Explain another format's word `key`, which is called `ours` here."""
    head, _, example = ours.partition(": ")
    name = head.split(".", 1)[0]
    ours_is = f"here that is said with {head}" if example else f"it is called {head} here"
    said = f"{message}; {ours_is}"
    if place == "" and name in LATER_KEYS[""]:
        return UnknownKey(
            "later-key", f"{said}, which this version does not carry out yet", _UNTIL_LATER
        )
    if example:
        help_ = f"write {ours}"
    elif "." in head:
        help_ = f"write {name}: {{{head.partition('.')[2]}: …}}"
    else:
        help_ = f"write {head}: …"
    same = ours if key in SAME_VALUE.get(place, frozenset()) else None
    return UnknownKey("unknown-key", said, help_, name, same)


def place_of(path: Path) -> Place:
    """The kind of map at `path`, as the tables of words know it."""
    if not path:
        return ""
    if path[0] == "tools" and len(path) == 2:
        return "tools[]"
    if path[0] == "variables" and len(path) == 2:
        return "variables[]"
    if path[:2] == ("approval", "rules") and len(path) == 3:
        return "rules[]"
    if path[:2] == ("model", "fallback") and len(path) == 3:
        return "model.fallback[]"
    return ".".join(str(step) for step in path)


def _later_place(place: Place, key: str) -> str | None:
    if key in LATER_KEYS.get(place, frozenset()):
        return "the agent" if place == "" else _place_words(place).split(" ", 1)[1]
    return None


def _did_you_mean(meant: str | None, known: Mapping[str, JsonValue]) -> str | None:
    if meant is not None:
        return f"did you mean {meant!r}?"
    if not known:
        return "remove it, or name it x-… if it is a note of your own"
    return f"its keys are {', '.join(known)}; a note of your own is named x-…"


def _place_words(place: Place, at: str = "at") -> str:
    return {
        "": f"{at} the top of the file",
        "tools[]": "under an entry of tools",
        "variables[]": "under one of the variables",
        "rules[]": "under one of approval.rules",
        "model.fallback[]": "under an entry of model.fallback",
    }.get(place, f"under {place}")


def _keys_by_place(schema: Schema) -> Mapping[Place, frozenset[str]]:
    properties = schema["properties"]
    places: dict[Place, frozenset[str]] = {
        "": frozenset(properties),
        "tools[]": frozenset(schema["$defs"]["toolEntry"]["properties"]),
        "variables[]": frozenset(schema["$defs"]["variable"]["properties"]),
        "rules[]": frozenset(schema["$defs"]["rule"]["properties"]),
    }
    places["model"] = frozenset(schema["$defs"]["model"]["properties"])
    places["prompt"] = frozenset(schema["$defs"]["ownFile"]["properties"])
    for name in ("approval", "limits", "budget", "price", "listing", "requires"):
        definition = resolved({"$ref": f"#/$defs/{name}"}, schema)
        places[name] = frozenset(definition["properties"])
    return places
