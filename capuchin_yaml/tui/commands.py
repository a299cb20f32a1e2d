"""Every action that can be called by name: in the palette, and after a slash in the composer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from capuchin_yaml.tui.draw.bars import short_id
from capuchin_yaml.tui.model.search import Choosable

if TYPE_CHECKING:
    from capuchin_yaml.tui.app import CapuchinApp


@dataclass(frozen=True, slots=True)
class Command:
    """One action with its name."""

    slash: str
    """What is typed after the slash."""
    name: str
    help: str
    run: Callable[[], Any]


def commands(app: CapuchinApp) -> tuple[Command, ...]:
    """Every action of the app."""
    chat = app.chat
    return (
        Command("inbox", "Inbox", "what waits for a person", app.action_inbox),
        Command("decided", "Decided", "who answered what, when and why", app.action_decided),
        Command("grants", "Grants", "what is allowed beforehand", app.action_grants),
        Command("events", "Events", "the log of this conversation", app.action_events),
        Command("costs", "Costs", "tokens by conversation, agent, model", app.action_costs),
        Command("agents", "Agents", "what is served, and what is wrong", app.action_agents),
        Command("new", "New conversation", "pick an agent", app.action_new_talk),
        Command("list", "Conversations", "go to the list", chat.action_talks),
        Command("find", "Find", "a text in this conversation", chat.action_find),
        Command("history", "History", "search what was sent before", chat.action_history),
        Command("editor", "Editor", "write the draft in $EDITOR", chat.action_editor),
        Command("cancel", "Cancel turn", "end the running turn", chat.cancel_turn),
        Command("back", "Take back", "the last message not sent", chat.take_back),
        Command("rename", "Rename", "give this conversation a title", app.talks.rename),
        Command("close", "Close conversation", "end it for good", app.talks.close),
        Command("reopen", "Open again", "a conversation that was closed", app.talks.reopen),
        Command("theme", "Theme", "change the colours", app.action_change_theme),
        Command("repaint", "Repaint", "draw the screen again", app.action_repaint),
        Command("suspend", "Suspend", "back to the shell; fg returns", app.action_suspend_process),
        Command("help", "Help", "the keys that act here", app.action_help),
        Command("quit", "Quit", "conversations go on", app.exit),
    )


def choosables(app: CapuchinApp) -> list[Choosable]:
    """Actions, conversations and agents, as the palette lists them."""
    fleet = app.desk.fleet
    found = [Choosable(f"/{c.slash}", c.name, c.help, "action") for c in commands(app)]
    found += [
        Choosable(f"a:{c.name}", c.name, f"new conversation · {c.description}", "agent")
        for c in fleet.agents
        if c.is_served
    ]
    found += [
        Choosable(f"t:{r.id}", f"{r.agent} {short_id(r.id)}", fleet.title(r), fleet.status(r))
        for r in fleet.ordered()
    ]
    return found


def run_chosen(app: CapuchinApp, key: str) -> None:
    """Do what an entry of the palette stands for."""
    kind, name = key[:2], key[2:]
    if kind == "a:":
        app.to_chat()
        app.action_new_talk(name)
    elif kind == "t:":
        app.to_chat()
        app.chat.open(name)
        app.chat.focus_composer()
    else:
        for command in commands(app):
            if f"/{command.slash}" == key:
                if command.slash in _OF_CHAT:
                    app.to_chat()
                command.run()


_OF_CHAT = frozenset(
    {"new", "list", "find", "history", "editor", "cancel", "back", "rename", "close", "reopen"}
)
