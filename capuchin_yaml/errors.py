"""The errors of capuchin-yaml, named by who must act.

CapuchinError
    InvalidAgent          the author edits the file
    PluginUnavailable     the operator installs or mends a tool package
    InvalidTool           the author of a tool package mends the function
    ServerUnavailable     the operator starts the server
    WorkerUnavailable     the operator starts a worker
    UnsafeState           the operator removes or mends the state folder
    ConversationNotFound  the caller names another conversation
    ConversationBlocked   the operator puts the right code back
    RequestRefused        the caller changes the request
    NotSent               the caller sends again, nothing was kept
    ModelRejected         the author changes the request, never retried
    ModelUnavailable      nobody, Temporal retries
    ToolFailed            the model reads it and goes on
    ToolUnavailable       nobody, the call is scheduled again
BaseException
    ToolCancelled         nobody, a tool lets it through after putting things in order
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from capuchin_yaml.diagnostics import Diagnostic


class CapuchinError(Exception):
    """Something that a person can act on; its text says what, where and what to do."""


class InvalidAgent(CapuchinError):
    """An agent file has mistakes; `diagnostics` holds all of them in file order."""

    def __init__(self, message: str, diagnostics: Sequence[Diagnostic] = ()) -> None:
        super().__init__(message)
        self.diagnostics = tuple(diagnostics)


class PluginUnavailable(CapuchinError):
    """A tool or its package is not installed, or fails to import."""


class InvalidTool(CapuchinError):
    """A function or package cannot be offered to a model as it is declared."""


class ServerUnavailable(CapuchinError):
    """No Temporal server answered, or none could be started."""


class WorkerUnavailable(CapuchinError):
    """The server is up, but no worker serves this project."""


class UnsafeState(CapuchinError):
    """A state folder or key is not ours alone, so it is not used."""


class ConversationNotFound(CapuchinError):
    """No conversation has this id or prefix, or several have it."""


class ConversationBlocked(CapuchinError):
    """A conversation's own code fails on the installed release; it goes on once that is mended."""


class RequestRefused(CapuchinError):
    """The conversation refused a request; nothing was changed."""


class NotSent(CapuchinError):
    """A request could not be delivered in time and was not kept."""


class ModelRejected(CapuchinError):
    """The provider refused the request for good (4xx other than 408, 409 and 429)."""


class ModelUnavailable(CapuchinError):
    """The provider cannot answer now (408, 409, 429, 5xx, connection lost)."""

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
        """Pause the provider asked for, counted from its answer; None when it named none."""


class ToolFailed(CapuchinError):
    """The tool says that it did not do what was asked; the model reads the text."""


class ToolUnavailable(CapuchinError):
    """The tool could not be entered; nothing has happened and the call may be made again."""


class ToolCancelled(BaseException):
    """The call was cancelled; raised inside the tool's code, wherever that is just then.

    No `except Exception` catches it. A tool that knows that it did nothing may catch it and
    raise ToolFailed instead.
    """
