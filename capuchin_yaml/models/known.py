"""Which models a provider is known to have, and which have a price; never asks the provider."""

from __future__ import annotations

import importlib.util
import re
from functools import cache
from pathlib import Path

REHEARSAL = "rehearsal"
PROVIDERS = ("anthropic", REHEARSAL, "scripted")
"""Every provider this release has, sorted."""
_OFFLINE = frozenset({"rehearsal", "scripted"})
_DATED = re.compile(r"-(\d{8}|latest)$")


@cache
def known_names(provider: str) -> frozenset[str]:
    """The names that the provider's installed SDK lists; empty when it lists none."""
    if provider != "anthropic":
        return frozenset()
    # Why not imported: the SDK takes half a second, and its list is one line of one file.
    found = importlib.util.find_spec(provider)
    if found is None or found.origin is None:
        return frozenset()
    file = Path(found.origin).parent / "types" / "model.py"
    try:
        text = file.read_text(encoding="utf-8")
    except OSError:
        return frozenset()
    return frozenset(re.findall(r'"(claude-[a-z0-9-]+)"', text))


def is_known(provider: str, name: str) -> bool:
    """Whether the model is listed, with or without a date; true where nothing is listed."""
    names = known_names(provider)
    return not names or name in names or _DATED.sub("", name) in names


def has_price(model: str) -> bool:
    """Whether what `provider:name` costs is known; what runs offline costs nothing."""
    provider, _, name = model.partition(":")
    if provider in _OFFLINE:
        return True
    # Why here: its data takes long to load, and only a budget in dollars asks for it.
    from genai_prices import data_snapshot

    try:
        data_snapshot.get_snapshot().find_provider_model(name, None, provider, None)
    except LookupError:
        return False
    return True
