"""One map of a file laid over another: what `extends` and `profiles` mean.

Maps are merged key by key, everything else is replaced. A word that decides what a block means
takes the block with it: with a `policy` of its own a block inherits no list, with a `name` of its
own no setting of another model, with a `type` of its own nothing of another price.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from capuchin_yaml.compiler.document import Entry, Node, Path
from capuchin_yaml.policy.needs import variable_of

_SHORT_FORMS: Mapping[Path, str] = {("approval",): "policy", ("model",): "name"}
"""Blocks that may be one word, and the key that the word then stands for."""
_DECIDING: Mapping[Path, str] = {("model",): "name", ("price",): "type"}
_LISTS_OF: Mapping[Path, tuple[str, str]] = {("approval",): ("policy", "tools")}


def merged(below: Node, above: Node, path: Path = ()) -> Node:
    """What holds when `above` is said on top of `below`."""
    if above.kind != "map" or above.broken or below.broken or variable_of(above.value):
        return above
    word = _SHORT_FORMS.get(path)
    if below.kind == "scalar" and word is not None and isinstance(below.value, str):
        below = map_of({word: Entry(below.span, below)}, below)
    if below.kind != "map" or _DECIDING.get(path, "") in above.entries:
        return above
    kept = dict(below.entries)
    decider, owned = _LISTS_OF.get(path, ("", ""))
    if decider in above.entries:
        kept.pop(owned, None)
    both = {
        name: Entry(entry.key, merged(kept[name].node, entry.node, (*path, name)))
        if name in kept
        else entry
        for name, entry in above.entries.items()
    }
    # Why first: what a file lacks is reported at its own first key.
    entries = {**both, **{n: e for n, e in kept.items() if n not in both}}
    if path:
        entries = {n: entries[n] for n in dict.fromkeys((*kept, *entries))}
    return map_of(entries, above)


def map_of(entries: dict[str, Entry], place: Node) -> Node:
    """A map with these entries that stands where `place` stands."""
    return Node(
        "map",
        {name: entry.node.value for name, entry in entries.items()},
        place.span,
        entries=MappingProxyType(entries),
        size=1 + sum(entry.node.size for entry in entries.values()),
        broken=place.broken,
    )


def without(node: Node, names: frozenset[str]) -> Node:
    """The map without the keys of these names."""
    if not names & node.entries.keys():
        return node
    return map_of({n: e for n, e in node.entries.items() if n not in names}, node)
