"""A result with more to it than what the model reads."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from capuchin_yaml.errors import ToolFailed
from capuchin_yaml.spec import JsonValue

MAX_ARTIFACT_BYTES = 64 * 1024 * 1024
MAX_ARTIFACTS = 20
MAX_NAME = 200


@dataclass(frozen=True, slots=True)
class Artifact:
    """A file that a call made: kept in the store, and told to the model by name and digest."""

    name: str
    media_type: str = "application/octet-stream"
    data: bytes | str | None = None
    """The content itself; either this or `path`."""
    path: Path | None = None
    """A file to read it from as soon as the tool returns; it may be removed afterwards."""

    def content(self) -> bytes:
        """Return the bytes of the artifact, at most 64 MB.

        Raises:
            ToolFailed: there are none, or too many; says which artifact.
        """
        if (self.data is None) == (self.path is None):
            raise ToolFailed(f"artifact {self.name!r} needs either data or a path")
        if self.path is None:
            given = self.data.encode() if isinstance(self.data, str) else bytes(self.data or b"")
            if len(given) > MAX_ARTIFACT_BYTES:
                raise ToolFailed(f"artifact {self.name!r} is over {MAX_ARTIFACT_BYTES >> 20} MB")
            return given
        try:
            with open(self.path, "rb", opener=_without_waiting) as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise ToolFailed(f"artifact {self.name!r} is not a plain file")
                read = file.read(MAX_ARTIFACT_BYTES + 1)
        except OSError as error:
            raise ToolFailed(f"artifact {self.name!r} cannot be read: {error.strerror}") from error
        if len(read) > MAX_ARTIFACT_BYTES:
            raise ToolFailed(f"artifact {self.name!r} is over {MAX_ARTIFACT_BYTES >> 20} MB")
        return read


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool may return instead of a plain value."""

    text: object = None
    """What the model reads: a text, or plain data as a tool would return it by itself."""
    is_error: bool = False
    """The tool says that it did not do what was asked, as with ToolFailed."""
    artifacts: Sequence[Artifact] = ()
    receipt: Mapping[str, JsonValue] | None = field(default=None, kw_only=True)
    """Proof for the audit, such as a payment's own number; the model never sees it."""


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
