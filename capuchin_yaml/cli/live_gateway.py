"""The gateway of the TUI and of the plain mode over the server of this project."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from capuchin_yaml.cli.agents_file import KnownAgent, told_agent
from capuchin_yaml.cli.bell import wants_bell
from capuchin_yaml.cli.reached import reach
from capuchin_yaml.tui.gateway import AgentCard

if TYPE_CHECKING:
    from capuchin_yaml.client.home import Home
    from capuchin_yaml.tui.live import LiveGateway


def card(agent: KnownAgent) -> AgentCard:
    """An agent as the TUI lists it."""
    return AgentCard(
        name=agent.name,
        version=agent.version,
        description=agent.description,
        model=agent.model,
        policy=agent.sentence,
        variables=agent.variables,
        injected=agent.injected,
        problem=agent.problem,
    )


async def live_gateway(
    home: Home, cards: Callable[[], Sequence[AgentCard]], program: str = "tui"
) -> LiveGateway:
    """Connect; `cards` tells, at any time, which agents are served on this machine.

    Those that only workers elsewhere serve are known from the server. `program` is what is
    recorded with every request.

    Raises:
        ServerUnavailable: nothing is started here, or it does not answer.
        UnsafeState: the state folder or its key is not ours alone.
    """
    from capuchin_yaml.client.identity import asserted_user
    from capuchin_yaml.tui.live import LiveGateway

    fleet = await reach(home, program=program)
    rings = await asyncio.to_thread(wants_bell)

    async def all_cards() -> Sequence[AgentCard]:
        here = list(cards())
        names = {c.name for c in here}
        elsewhere = [told_agent(s.told) for s in await fleet.served() if s.agent not in names]
        return [*here, *(card(agent) for agent in elsewhere if agent is not None)]

    return LiveGateway(fleet, user=asserted_user(), agents=all_cards, rings=rings)
