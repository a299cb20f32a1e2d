"""Asks the agent's model, and while it cannot answer those that the file names in its place."""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field

from capuchin_yaml.compiler.operator_config import LiveOperatorConfig
from capuchin_yaml.engine.agents import AgentTable
from capuchin_yaml.engine.scrub import Scrubber
from capuchin_yaml.errors import CapuchinError, ModelRejected, ModelUnavailable
from capuchin_yaml.messages import ModelReply
from capuchin_yaml.models.adapter import ModelAdapter
from capuchin_yaml.models.registry import open_model
from capuchin_yaml.policy.needs import may_have, model_need
from capuchin_yaml.spec import AgentSpec, ModelChoice

logger = logging.getLogger(__name__)
Ask = Callable[[ModelAdapter, ModelChoice], Awaitable[ModelReply]]


@dataclass(slots=True)
class ModelCalls:
    """The adapters of one worker, each opened when it is first asked."""

    agents: AgentTable
    operator: LiveOperatorConfig
    scrubber: Scrubber
    _adapters: dict[tuple[str, str, str, str], ModelAdapter] = field(default_factory=dict)

    async def reply(self, spec: AgentSpec, model: str, ask: Ask) -> tuple[str, ModelReply]:
        """The name of the model that answered, and its reply.

        A fallback is asked only while the one before it is not available: what a model refuses
        is a mistake that another answer would hide. A fallback that fails in any way is passed
        over.

        Raises:
            CapuchinError: none answered; what the agent's own model said.
        """
        failure: CapuchinError | None = None
        for choice in choices(spec, model):
            try:
                return choice.name, await ask(self._adapter(spec, choice), choice)
            except CapuchinError as error:
                logger.warning("the model %s does not answer: %s", choice.name, error)
                failure = failure or error
                if not isinstance(failure, ModelUnavailable):
                    break
        assert failure is not None
        raise failure

    async def stop(self) -> None:
        """Close what the adapters keep open."""
        for adapter in self._adapters.values():
            close = getattr(adapter, "aclose", None)
            if close is not None:
                await close()

    def _adapter(self, spec: AgentSpec, choice: ModelChoice) -> ModelAdapter:
        address, variable = choice.settings.base_url, choice.settings.key_variable
        need = model_need(address, variable)
        if need is not None and not may_have(need, self.operator.now().grants):
            raise ModelRejected(
                f"the operator of this worker has not granted {need}; there: capuchin trust PATH"
            )
        if variable is not None:
            self.scrubber.add(variable, os.environ.get(variable, ""))
        key = (spec.name, choice.name, address or "", variable or "")
        if key not in self._adapters:
            served = self.agents.get(spec.name)
            from_file = served is not None and choice.name in _named(served.spec)
            folder = served.folder if served is not None and from_file else None
            self._adapters[key] = open_model(
                choice.name, base_dir=folder, base_url=address, key_variable=variable
            )
        return self._adapters[key]


def choices(spec: AgentSpec, model: str) -> Iterator[ModelChoice]:
    """The models that may answer, in order, each with how it is asked."""
    if model != spec.model:
        # Why: the settings were chosen for the agent's own model, and another may refuse them.
        yield ModelChoice(model)
        return
    yield ModelChoice(model, spec.model_settings)
    yield from spec.model_settings.fallback


def _named(spec: AgentSpec) -> tuple[str | None, ...]:
    return (spec.model, *(choice.name for choice in spec.model_settings.fallback))
