"""When a conversation goes on in a new run.

Runs inside the workflow. The server's figures are read only where a replay reads the same: in an
update's handler and when an ordinary activity has ended. Why not anywhere: what follows a local
activity may run in a later workflow task than in its replay, with other figures, so a decision by
them there makes a history that cannot be replayed (tests/engine/test_change.py).
"""

from __future__ import annotations

from dataclasses import replace
from typing import NoReturn

from temporalio import workflow

from capuchin_yaml.engine import contract
from capuchin_yaml.engine.state import Conversation


class RollOver:
    """Whether the history has grown enough; once it has, it stays so for the run."""

    def __init__(self, conversation: Conversation) -> None:
        self._c = conversation
        self._due = False

    def __call__(self) -> bool:
        """Whether the next moment between two steps begins a new run."""
        return self._due

    def measure(self) -> None:
        """Read the figures; call it only where the module says."""
        if self._c.definition is None:
            return
        info = workflow.info()
        self._due = self._due or (
            info.get_current_history_length() >= self._c.definition.roll_over_events
            or info.get_current_history_size() >= contract.ROLL_OVER_BYTES
            or info.is_continue_as_new_suggested()
        )


def go_on_in_a_new_run(conversation: Conversation, start: contract.StartConversation) -> NoReturn:
    """End this run, and begin the next with all that the conversation knows."""
    info = workflow.info()
    workflow.continue_as_new(
        replace(
            start,
            conversation=conversation.id,
            first_run_id=info.first_execution_run_id,
            carried=conversation.carry(info.run_id),
            reopens="",
        ),
        # Why: a conversation that is pinned to a build moves to the current one here.
        initial_versioning_behavior=workflow.ContinueAsNewVersioningBehavior.AUTO_UPGRADE,
        # Why: without these the new run has the memo and attributes of the very first start.
        memo=workflow.memo(),
        search_attributes=info.typed_search_attributes,
    )
