"""Keys: every binding by its id, and the file that gives some of them other keys.

The file `keys.yaml` in the state folder maps ids to keys: `app.inbox: f6` or
`chat.new: ctrl+n, ctrl+t`. Keys that answer items are no bindings and cannot be moved.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

from textual.binding import Binding

from capuchin_yaml.tui.model.answers import ANSWERS

_MAX_BYTES = 64_000


@dataclass(frozen=True, slots=True)
class BoundKey:
    """One binding as the reference lists it."""

    id: str
    keys: tuple[str, ...]
    does: str
    section: str


@dataclass(frozen=True, slots=True)
class Keymap:
    """What the file says, and what of it is not followed."""

    keys: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


def sections() -> dict[str, type]:
    """Where keys act, with the class that binds them."""
    from capuchin_yaml.tui.app import CapuchinApp
    from capuchin_yaml.tui.screens import (
        agents,
        boxes,
        chat,
        chooser,
        costs,
        decided,
        editing,
        events,
        grants,
        inbox,
        remembering,
    )
    from capuchin_yaml.tui.screens.new_talk import NewTalk
    from capuchin_yaml.tui.widgets import composer, item_detail, picklist, reader, transcript

    return {
        "Everywhere": CapuchinApp,
        "Chat": chat.ChatScreen,
        "Composer": composer.Composer,
        "Transcript": transcript.Transcript,
        "Lists": picklist.PickList,
        "Inbox": inbox.InboxScreen,
        "An item": item_detail.ItemDetail,
        "Decided": decided.DecidedScreen,
        "Allowed beforehand": grants.GrantsScreen,
        "Changing arguments": editing.EditBox,
        "Remembering": remembering.RememberBox,
        "Events": events.EventsScreen,
        "Costs": costs.CostsScreen,
        "Agents": agents.AgentsScreen,
        "Text to read": reader.Reader,
        "Palette and history": chooser.Chooser,
        "New conversation": NewTalk,
        "A box for text": boxes.TextBox,
        "A box for a name": boxes.NameBox,
        "Leaving": boxes.QuitBox,
        "Help": boxes.HelpBox,
    }


def bound_keys() -> list[BoundKey]:
    """Every binding that has an id, by section."""
    found: list[BoundKey] = []
    for section, cls in sections().items():
        for binding in cls.__dict__.get("BINDINGS", ()):
            if isinstance(binding, Binding) and binding.id:
                keys = tuple(k.strip() for k in binding.key.split(","))
                found.append(BoundKey(binding.id, keys, binding.description, section))
    return found


def read_keymap(file: Path | None) -> Keymap:
    """The keymap of a file; a missing file is an empty one."""
    if file is None:
        return Keymap()
    try:
        text = file.read_bytes()[:_MAX_BYTES].decode("utf-8", "replace")
    except FileNotFoundError:
        return Keymap()
    except OSError as error:
        return Keymap(problems=(f"{file.name} cannot be read: {error.strerror}",))
    import yaml

    try:
        # Why: with this loader every scalar is the text it looks like, `y` and `on` too.
        value = yaml.load(text, Loader=yaml.BaseLoader)
    except (yaml.YAMLError, RecursionError) as error:
        return Keymap(problems=(f"{file.name} is no YAML: {str(error).splitlines()[0]}",))
    if value in (None, ""):
        return Keymap()
    if not isinstance(value, dict):
        return Keymap(problems=(f"{file.name} must map ids to keys",))
    return checked_keymap(value, bound_keys(), file.name)


def checked_keymap(value: Mapping[object, object], bound: Iterable[BoundKey], name: str) -> Keymap:
    """The part of a mapping that can be followed, and a sentence for every part that cannot."""
    known = {b.id: b for b in bound}
    keys: dict[str, str] = {}
    problems: list[str] = []
    for binding_id, wanted in value.items():
        if not isinstance(binding_id, str) or binding_id not in known:
            close = get_close_matches(str(binding_id), known, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            problems.append(f"{name}: no key has the id {binding_id}{hint}")
            continue
        parts = [str(w) for w in wanted] if isinstance(wanted, list) else str(wanted).split(",")
        cleaned = [p.strip() for p in parts]
        if not cleaned or any(not p or len(p.split()) != 1 for p in cleaned):
            problems.append(f"{name}: {binding_id} needs keys such as f6 or ctrl+t")
            continue
        section = known[binding_id].section
        answering = {a.key for kind in ANSWERS.values() for a in kind}
        taken = answering & set(cleaned) if section in ("Inbox", "An item") else set()
        if taken:
            problems.append(f"{name}: {binding_id} cannot be {taken.pop()}, which answers items")
            continue
        keys[binding_id] = ",".join(cleaned)
    return _without_clashes(keys, known, problems, name)


def _without_clashes(
    keys: dict[str, str], known: Mapping[str, BoundKey], problems: list[str], name: str
) -> Keymap:
    by_place: dict[tuple[str, str], str] = {}
    for binding_id, bound in known.items():
        if binding_id not in keys:
            by_place.update({(bound.section, k): binding_id for k in bound.keys})
    for binding_id in list(keys):
        section = known[binding_id].section
        for key in keys[binding_id].split(","):
            other = by_place.setdefault((section, key), binding_id)
            if other != binding_id:
                problems.append(f"{name}: {key} is {other} already, so {binding_id} stays")
                keys.pop(binding_id, None)
                break
    return Keymap(keys, tuple(problems))
