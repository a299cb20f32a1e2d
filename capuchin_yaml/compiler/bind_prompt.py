"""`prompt` of a checked file: its template checked at the place where each mistake stands."""

from __future__ import annotations

from collections.abc import Mapping

from capuchin_yaml.compiler.document import Node
from capuchin_yaml.compiler.reading import Reading
from capuchin_yaml.compiler.scalar_positions import ScalarPositions
from capuchin_yaml.compiler.wording import shown
from capuchin_yaml.diagnostics import Span
from capuchin_yaml.spec import JsonValue, VariableSpec


def bind_prompt(
    reading: Reading, variables: Mapping[str, VariableSpec], injected: tuple[str, ...]
) -> str | None:
    """The prompt's source, or None when the file has none that can be read."""
    node = reading.node(("prompt",))
    if node is None or not isinstance(node.value, str):
        return None
    if not node.text.strip():
        reading.error("empty-prompt", "the prompt is empty", _where(reading))
        return None
    positions = ScalarPositions(reading.document.source, node)
    if "{{" in node.text or "{%" in node.text or "{#" in node.text:
        _check(reading, node, positions, variables, injected)
    else:
        _report_unused(reading, variables, frozenset())
    return node.text


def _check(
    reading: Reading,
    node: Node,
    positions: ScalarPositions,
    variables: Mapping[str, VariableSpec],
    injected: tuple[str, ...],
) -> None:
    # Why: Jinja takes 60 ms to import, and most prompts hold no template.
    from capuchin_yaml.compiler.template import check_template, render_problem

    names = _known_names(reading, variables)
    checked = check_template(node.text, names)
    for problem in checked.problems:
        message, help_ = problem.message, problem.help
        name = node.text[problem.start : problem.end]
        if problem.id == "undefined-variable" and name in injected:
            message = f"the prompt uses {shown(name)}, which is injected: the model never sees it"
            help_ = f"declare it under variables too, or remove it: {name}"
        reading.error(problem.id, message, positions.span(problem.start, problem.end), help_)
    if checked.parsed:
        _report_unused(reading, variables, checked.used)
    defaults = _defaults(variables)
    if checked.problems or defaults is None:
        return
    shows_rendered = render_problem(node.text, defaults)
    if shows_rendered is not None:
        where = (
            _where(reading)
            if shows_rendered.id == "empty-prompt"
            else positions.span(shows_rendered.start, shows_rendered.end)
        )
        reading.error(shows_rendered.id, shows_rendered.message, where, shows_rendered.help)


def _known_names(reading: Reading, variables: Mapping[str, VariableSpec]) -> frozenset[str]:
    """The declared names, also of variables whose own block is wrong."""
    block = reading.document.node(("variables",))
    return frozenset(variables) | frozenset(block.entries if block is not None else ())


def _defaults(variables: Mapping[str, VariableSpec]) -> dict[str, JsonValue] | None:
    """The values of a conversation that gives none; None when it has to give some."""
    if any(variable.required for variable in variables.values()):
        return None
    return {
        name: variable.default
        for name, variable in variables.items()
        if variable.default is not None
    }


def _report_unused(
    reading: Reading, variables: Mapping[str, VariableSpec], used: frozenset[str]
) -> None:
    for name in variables:
        if name not in used:
            reading.warning(
                "unused-variable",
                f"the prompt never uses the variable {shown(name)}",
                reading.document.key_span(("variables", name)),
                f"write {{{{ {name} }}}} in the prompt, or remove the variable",
            )


def _where(reading: Reading) -> Span:
    return reading.document.key_span(("prompt",))
