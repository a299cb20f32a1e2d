"""What a call gave, in the form in which the workflow takes it: scrubbed, capped, plain."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from capuchin_yaml.engine import contract
from capuchin_yaml.engine.scrub import Scrubber
from capuchin_yaml.engine.storage import FolderStore
from capuchin_yaml.errors import ToolFailed
from capuchin_yaml.spec import JsonValue
from capuchin_yaml.tools.definition import Tool
from capuchin_yaml.tools.preview import preview_hash
from capuchin_yaml.tools.results import NO_OUTPUT, result_text
from capuchin_yaml.tools.tool_result import MAX_ARTIFACTS, MAX_NAME, Artifact, ToolResult

Outcome: TypeAlias = dict[str, JsonValue]
"""`{status, text, duration_s, artifacts?, receipt?}`; status is ok, error (it did not do it),
unknown, cancelled (a repeatable call that was stopped), unavailable (never entered) or changed
(this worker would run something else)."""

MAX_ERROR = 2000
_HEAD_PART = 0.75

logger = logging.getLogger("capuchin_yaml.tools")


class Maker(Protocol):
    """Turns what a tool returned or raised into an outcome, without ever failing."""

    @property
    def scrubber(self) -> Scrubber:
        """What keeps secrets out of it."""

    def returned(self, tool: Tool, value: object) -> Outcome:
        """The outcome of a tool that returned."""

    def raised(self, status: str, text: str) -> Outcome:
        """The outcome of a tool that raised."""


@dataclass(frozen=True, slots=True)
class OutcomeMaker:
    """Makes outcomes; nothing in here may fail, for the tool has already run."""

    scrubber: Scrubber
    store: FolderStore | None

    def returned(self, tool: Tool, value: object) -> Outcome:
        """The outcome of a tool that returned."""
        result = value if isinstance(value, ToolResult) else ToolResult(value)
        try:
            text = result_text(result.text)
        except ToolFailed as error:
            text = f"({tool.name} ended, but its result cannot be shown: {error})"
        outcome: Outcome = {"status": "error" if result.is_error else "ok"}
        try:
            kept, lines = self._artifacts(result.artifacts)
            if kept:
                outcome["artifacts"] = kept
            if lines:
                text = "\n".join([*([text] if text != NO_OUTPUT else []), *lines])
            if result.receipt is not None:
                outcome["receipt"] = self._receipt(result.receipt)
        except Exception as error:  # a ToolResult may hold anything
            logger.warning("%s returned a wrong ToolResult", tool.name, exc_info=True)
            text += f"\n(the rest of its result is wrong: {type(error).__name__}: {error})"
        outcome["text"] = self.capped(self.scrubber.scrub(text))
        return outcome

    def raised(self, status: str, text: str) -> Outcome:
        """The outcome of a tool that raised."""
        text = self.scrubber.scrub(text).encode("utf-8", "backslashreplace").decode()
        return {"status": status, "text": self.capped(text)}

    def capped(self, text: str) -> str:
        """The text itself, or its head and tail with a mark between; then the store has it all."""
        data = text.encode("utf-8", "replace")
        if len(data) <= contract.MAX_RESULT_BYTES:
            return data.decode()
        where = "the store has it whole" if self._keep(data) else "it is kept nowhere else"
        digest = hashlib.sha256(data).hexdigest()
        head = int(contract.MAX_RESULT_BYTES * _HEAD_PART)
        tail = contract.MAX_RESULT_BYTES - head
        return (
            data[:head].decode("utf-8", "ignore")
            + f"\n[… {len(data) - head - tail} of {len(data)} bytes left out; "
            + f"the whole result has sha256 {digest}, {where}]\n"
            + data[-tail:].decode("utf-8", "ignore")
        )

    def _keep(self, data: bytes) -> bool:
        if self.store is None:
            return False
        try:
            self.store.put(data)
        except OSError as error:
            logger.warning("what a tool returned could not be kept whole: %s", error)
            return False
        return True

    def _artifacts(self, artifacts: Sequence[Artifact]) -> tuple[dict[str, JsonValue], list[str]]:
        """What was kept, by digest, and a line for the model on each."""
        kept: dict[str, JsonValue] = {}
        lines: list[str] = []
        for artifact in list(artifacts)[:MAX_ARTIFACTS]:
            name = self._label(artifact.name)
            kind = self._label(artifact.media_type)
            try:
                data = self.scrubber.scrub_bytes(artifact.content())
            except ToolFailed as error:
                lines.append(f"[{self.scrubber.scrub(str(error))}]")
                continue
            digest = hashlib.sha256(data).hexdigest()
            lost = "" if self._keep(data) else ", not kept: this worker has no store"
            lines.append(f"[artifact {name}, {kind}, {len(data)} bytes, sha256 {digest}{lost}]")
            if not lost:
                kept[digest] = {"name": name, "media_type": kind, "bytes": len(data)}
        if len(artifacts) > MAX_ARTIFACTS:
            lines.append(f"[{len(artifacts) - MAX_ARTIFACTS} more artifacts were left out]")
        return kept, lines

    def _label(self, text: object) -> str:
        shown = self.scrubber.scrub(" ".join(str(text).split())) or "unnamed"
        return shown.encode("utf-8", "backslashreplace").decode()[:MAX_NAME]

    def _receipt(self, receipt: Mapping[str, JsonValue]) -> JsonValue:
        text = self.scrubber.scrub(result_text(dict(receipt)))
        data = text.encode()
        if len(data) <= contract.MAX_RECEIPT_BYTES:
            return json.loads(text)
        digest = hashlib.sha256(data).hexdigest()
        return {"bytes": len(data), "sha256": digest, "kept": self._keep(data)}


@dataclass(frozen=True, slots=True)
class PreviewMaker:
    """Makes the outcomes of previews: `{status, text, hash}`, status ok or error."""

    scrubber: Scrubber

    def returned(self, tool: Tool, value: object) -> Outcome:
        """The text for a person, cut where it is too long; the hash is of the whole."""
        try:
            text, digest = result_text(value), preview_hash(value)
        except ToolFailed as error:
            return self.raised("error", str(error))
        data = self.scrubber.scrub(text).encode()
        if len(data) > contract.MAX_PREVIEW_BYTES:
            kept = data[: contract.MAX_PREVIEW_BYTES].decode("utf-8", "ignore")
            left = len(data) - contract.MAX_PREVIEW_BYTES
            return {"status": "ok", "text": f"{kept}\n[… {left} more bytes]", "hash": digest}
        return {"status": "ok", "text": data.decode(), "hash": digest}

    def raised(self, status: str, text: str) -> Outcome:
        """Why there is no preview."""
        clean = self.scrubber.scrub(text).encode("utf-8", "backslashreplace").decode()
        return {"status": "error", "text": clean[:MAX_ERROR], "hash": ""}
