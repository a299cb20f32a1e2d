"""`prompt` of a checked file: its template checked at the place where each mistake stands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from capuchin_yaml.compiler.own_files import AgentFolder, own_file, own_text
from capuchin_yaml.compiler.reading import Reading
from capuchin_yaml.compiler.repairs import EMPTY_PROMPT
from capuchin_yaml.compiler.scalar_positions import ScalarPositions
from capuchin_yaml.compiler.secret_text import SECRET_HELP, SECRET_MESSAGE, secret_ranges
from capuchin_yaml.compiler.source_text import SourceText
from capuchin_yaml.compiler.wording import shown
from capuchin_yaml.diagnostics import Span
from capuchin_yaml.spec import JsonValue, VariableSpec, VariableType

MAX_PROMPT_CHARS = 200_000


class FilePositions:
    """Maps places in the text of a file to themselves; `ScalarPositions` for a whole file."""

    def __init__(self, source: SourceText) -> None:
        self._source = source

    def span(self, start: int, end: int) -> Span:
        """The range of the file."""
        return self._source.span(start, end)


Positions: TypeAlias = ScalarPositions | FilePositions


def bind_prompt(
    reading: Reading,
    variables: Mapping[str, VariableSpec],
    injected: tuple[str, ...],
    folder: AgentFolder | None = None,
) -> str | None:
    """The prompt's source, or None when the file has none that can be read."""
    node = reading.node(("prompt",))
    if node is None:
        return None
    if node.kind == "map":
        return _from_file(reading, variables, injected, folder)
    if not isinstance(node.value, str):
        return None
    return _checked(
        reading,
        node.text,
        ScalarPositions(reading.document.source_of(node), node),
        variables,
        injected,
    )


def _from_file(
    reading: Reading,
    variables: Mapping[str, VariableSpec],
    injected: tuple[str, ...],
    folder: AgentFolder | None,
) -> str | None:
    where = ("prompt", "file")
    name = reading.text(where)
    file = own_file(reading, folder, name, where) if name is not None else None
    if file is None or folder is None:
        return None
    source = own_text(reading, folder, file, where)
    if source is None:
        return None
    if len(source.text) > MAX_PROMPT_CHARS:
        reading.error(
            "too-long",
            f"the prompt has {len(source.text)} characters, at most {MAX_PROMPT_CHARS} are kept",
            where,
            f"remove {len(source.text) - MAX_PROMPT_CHARS} characters",
        )
        return None
    for start, end in secret_ranges(source.text):
        span = source.span(start, end)
        reading.warning("secret-literal", SECRET_MESSAGE, span, SECRET_HELP)
    return _checked(reading, source.text, FilePositions(source), variables, injected)


def _checked(
    reading: Reading,
    text: str,
    positions: Positions,
    variables: Mapping[str, VariableSpec],
    injected: tuple[str, ...],
) -> str | None:
    if not text.strip():
        in_file = isinstance(positions, FilePositions)
        help_ = "write the prompt's text in that file" if in_file else EMPTY_PROMPT
        reading.error("empty-prompt", "the prompt is empty", _where(reading), help_)
        return None
    if "{{" in text or "{%" in text or "{#" in text:
        _check(reading, text, positions, variables, injected)
    else:
        _report_unused(reading, variables, frozenset())
    return text


def _check(
    reading: Reading,
    text: str,
    positions: Positions,
    variables: Mapping[str, VariableSpec],
    injected: tuple[str, ...],
) -> None:
    # Why: Jinja takes 60 ms to import, and most prompts hold no template.
    from capuchin_yaml.compiler.template import check_template, render_problems
    from capuchin_yaml.compiler.template_parts import part_problems

    names = _known_names(reading, variables)
    checked = check_template(text, names)
    for problem in checked.problems:
        message, help_ = problem.message, problem.help
        name = text[problem.start : problem.end]
        if problem.id == "undefined-variable" and name in injected:
            message = f"the prompt uses {shown(name)}, which is injected: the model never sees it"
            help_ = f"declare it under variables too, or remove it: {name}"
        reading.error(problem.id, message, positions.span(problem.start, problem.end), help_)
    # A misspelt name is one mistake, not two.
    if checked.parsed and not any(p.id == "undefined-variable" for p in checked.problems):
        _report_unused(reading, variables, checked.used)
    if names != frozenset(variables):
        # Some variable cannot be read, so there is nothing to fill in for it.
        return
    values, complete = _sample(variables)
    found = [
        problem
        for problem in render_problems(text, values, tuple(p.start for p in checked.problems))
        # Any other may come from the values made up here.
        if complete or problem.id in ("template-escape", "template-too-large")
    ]
    if checked.parsed:
        known = [p.start for p in (*checked.problems, *found)]
        found += part_problems(text, variables, known)
    for problem in found:
        where = (
            _where(reading)
            if problem.start == problem.end
            else positions.span(problem.start, problem.end)
        )
        name = text[problem.start : problem.end]
        help_ = problem.help
        if problem.id == "undefined-variable" and name in variables:
            help_ = (
                f"it may be left out: write {{{{ {name} | default('…') }}}}, or give it a default"
            )
        reading.error(problem.id, problem.message, where, help_)


def _known_names(reading: Reading, variables: Mapping[str, VariableSpec]) -> frozenset[str]:
    """The declared names, also of variables whose own block is wrong."""
    block = reading.document.node(("variables",))
    return frozenset(variables) | frozenset(block.entries if block is not None else ())


def _sample(variables: Mapping[str, VariableSpec]) -> tuple[dict[str, JsonValue], bool]:
    """The values of a conversation that gives only what it must, and whether it gives nothing."""
    made_up: Mapping[VariableType, JsonValue] = {
        "string": "x",
        "integer": 1,
        "number": 1.5,
        "boolean": True,
    }
    values: dict[str, JsonValue] = {}
    complete = True
    for name, variable in variables.items():
        if variable.default is not None:
            values[name] = variable.default
        elif variable.required:
            complete = False
            values[name] = variable.enum[0] if variable.enum else made_up[variable.type]
    return values, complete


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
