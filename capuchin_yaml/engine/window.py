"""The model's window on the worker: kept between calls, checked by digest, asked for on a miss."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from temporalio import activity
from temporalio.client import Client

from capuchin_yaml.engine import contract
from capuchin_yaml.engine.state import chained, window_start
from capuchin_yaml.messages import TranscriptEntry, entry_from_json
from capuchin_yaml.spec import AgentSpec, JsonValue

KEPT_CONVERSATIONS = 500
KEPT_DEFINITIONS = 200


@dataclass(frozen=True, slots=True)
class PinnedDefinition:
    """What `call_model` needs of the pinned definition."""

    spec: AgentSpec
    model: str
    system: str


class WindowCache:
    """Windows and definitions that this worker has seen; losing them costs one query each."""

    def __init__(self) -> None:
        self._windows: OrderedDict[str, tuple[str, list[TranscriptEntry]]] = OrderedDict()
        self._definitions: OrderedDict[str, PinnedDefinition] = OrderedDict()

    async def window(
        self, client: Client, request: contract.CallModel
    ) -> tuple[str, list[TranscriptEntry]]:
        """Return the digest and entries of the window that the request means.

        Raises:
            RuntimeError: the conversation answered another window than it asked for.
        """
        held = self._windows.get(request.conversation)
        if held is not None and held[0] == request.digest_before:
            entries = list(held[1])
        elif request.entries_before == 0:
            entries = []
        else:
            entries = [entry_from_json(e) for e in await _ask_entries(client, request)]
        digest = request.digest_before
        for entry in request.new_entries:
            digest = chained(digest, entry)
            entries.append(entry_from_json(entry))
        return digest, entries

    def keep(self, conversation: str, digest: str, entries: list[TranscriptEntry]) -> None:
        """Keep a window for the conversation's next call."""
        self._windows[conversation] = (digest, entries)
        self._windows.move_to_end(conversation)
        while len(self._windows) > KEPT_CONVERSATIONS:
            self._windows.popitem(last=False)

    async def definition(self, client: Client, request: contract.CallModel) -> PinnedDefinition:
        """Return the pinned definition of the request's conversation."""
        key = f"{request.conversation}\0{request.definition_hash}\0{request.pin}"
        held = self._definitions.get(key)
        if held is None:
            answer = await _query(client, request, contract.DEFINITION, 0)
            held = PinnedDefinition(
                AgentSpec.from_json(answer["spec"]), str(answer["model"]), str(answer["system"])
            )
            self._definitions[key] = held
        self._definitions.move_to_end(key)
        while len(self._definitions) > KEPT_DEFINITIONS:
            self._definitions.popitem(last=False)
        return held


async def _ask_entries(client: Client, request: contract.CallModel) -> list[dict[str, JsonValue]]:
    entries: list[dict[str, JsonValue]] = []
    while len(entries) < request.entries_before:
        answer = await _query(
            client, request, contract.TRANSCRIPT, request.first_entry + len(entries)
        )
        if not answer["entries"]:
            break
        entries += answer["entries"]
        activity.heartbeat()
    entries = entries[: request.entries_before]
    digest = window_start(request.conversation, request.first_entry)
    for entry in entries:
        digest = chained(digest, entry)
    if digest != request.digest_before:
        raise RuntimeError(
            f"the transcript of {request.conversation} is not the one that its model call means"
        )
    return entries


async def _query(
    client: Client, request: contract.CallModel, name: str, start: int
) -> dict[str, Any]:
    handle = client.get_workflow_handle(request.conversation, run_id=request.run_id)
    answer: Any = await handle.query(
        name, contract.Ask(conversation=request.conversation, start=start), result_type=dict
    )
    if not isinstance(answer, dict):
        raise RuntimeError(f"{request.conversation} answered {name} without the project's seal")
    return answer
