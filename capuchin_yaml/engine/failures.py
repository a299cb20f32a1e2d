"""The only place where exceptions become `ApplicationError`, and what may be tried again."""

from __future__ import annotations

from datetime import timedelta

from temporalio.exceptions import ApplicationError

from capuchin_yaml.engine import contract
from capuchin_yaml.errors import CapuchinError, ModelRejected, ModelUnavailable

LONGEST_PAUSE_S = 15 * 60.0
"""A provider that asks for a longer pause ends the turn with its words instead."""


def model_failure(error: Exception) -> ApplicationError:
    """How the failure of a model call is told to the workflow.

    The cause is not chained: what a provider echoes may hold what nobody should read.
    """
    match error:
        case ModelRejected():
            return ApplicationError(str(error), type=contract.MODEL_REJECTED, non_retryable=True)
        case ModelUnavailable(retry_after_s=pause) if pause is not None:
            if pause > LONGEST_PAUSE_S:
                return ApplicationError(
                    f"{error} (it asks to wait {_words(pause)}, which is too long to wait here)",
                    type=contract.MODEL_UNAVAILABLE,
                    non_retryable=True,
                )
            return ApplicationError(
                str(error),
                type=contract.MODEL_UNAVAILABLE,
                next_retry_delay=timedelta(seconds=pause),
            )
        case ModelUnavailable():
            return ApplicationError(str(error), type=contract.MODEL_UNAVAILABLE)
        case _:
            return ApplicationError(
                f"the model adapter failed: {type(error).__name__}: {error}",
                type=contract.MODEL_UNAVAILABLE,
            )


def definition_failure(error: CapuchinError) -> ApplicationError:
    """An agent that cannot be pinned: nothing to try again."""
    return ApplicationError(str(error), type=contract.NO_DEFINITION, non_retryable=True)


def _words(seconds: float) -> str:
    hours = seconds / 3600
    return f"{hours / 24:.0f} days" if hours >= 48 else f"{hours:.1f} hours"
