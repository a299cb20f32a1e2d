"""People and groups as the operator of the worker knows them: who may decide what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class People:
    """Who belongs to which group, and whose decisions are signed."""

    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By person: public SSH keys, `type base64`; who has one decides with a signature only."""
    problem: str = ""
    """Why none of it can be read; then nobody can approve."""

    def members(self, groups: Iterable[str]) -> tuple[str, ...]:
        """Who is in one of these groups, sorted."""
        return tuple(sorted({name for g in groups for name in self.groups.get(g, ())}))

    def unknown(self, groups: Iterable[str]) -> tuple[str, ...]:
        """The groups of these that the operator does not know."""
        return tuple(g for g in groups if g not in self.groups)

    def refusal(self, by: str, groups: tuple[str, ...]) -> str:
        """Why this person may not decide what waits for these groups; empty when they may."""
        if not groups or by in self.members(groups):
            return ""
        named = " or ".join(groups)
        unknown = self.unknown(groups)
        if len(unknown) == len(groups):
            return (
                f"nobody can decide this: the operator's config of the worker has no group {named}"
            )
        who = ", ".join(self.members(groups)) or "nobody yet"
        return f"{by or 'nobody'} is not in the group {named}; who is: {who}"
