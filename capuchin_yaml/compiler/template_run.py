"""Running a compiled template in its sandbox, and what to say when that fails."""

from __future__ import annotations

from collections.abc import Mapping
from types import CodeType, TracebackType

from jinja2 import Template, TemplateError
from jinja2.exceptions import SecurityError, UndefinedError

from capuchin_yaml.compiler.budget import MAX_PROMPT_CHARS, WORK, Budget, TooMuchWork
from capuchin_yaml.compiler.sandbox import PromptSandbox
from capuchin_yaml.compiler.template_walk import RAW_HINT, TemplateProblem, token_end
from capuchin_yaml.spec import JsonValue

FILE_NAME = "<prompt>"
"""The name under which templates are compiled, to find their frames in a traceback."""

_CONVERT = "convert it first: {{ … | int }}, {{ … | float }} or {{ … | string }}"
_LESS = "write a shorter range(…), or fewer loops inside each other"
_REMOVE = f"remove the expression, or {RAW_HINT}"


def rendered(code: CodeType, variables: Mapping[str, JsonValue], work: int = WORK) -> str:
    """The text of a template, for at most this much work.

    Raises:
        Exception: whatever the template does wrong; `render_problem` explains it.
    """
    sandbox = PromptSandbox(Budget(work))
    template = Template.from_code(sandbox, code, sandbox.globals)
    context = template.new_context(dict(variables))
    parts: list[str] = []
    length = 0
    for part in template.root_render_func(context):
        parts.append(part)
        length += len(part)
        if length > MAX_PROMPT_CHARS:
            raise TooMuchWork(f"the prompt is longer than {MAX_PROMPT_CHARS} characters")
    return "".join(parts)


def render_problem(error: Exception, code: CodeType | None, source: str) -> TemplateProblem:
    """What went wrong in a rendering, at the place that was rendered when it did."""
    place = _place(error, code, source)
    id_, message, help_ = _told(error)
    return TemplateProblem(id_, message, place, token_end(source, place), help_)


def _told(error: Exception) -> tuple[str, str, str | None]:
    """The id, the message, and what to type."""
    text = (str(error).splitlines() or [type(error).__name__])[0]
    match error:
        case TooMuchWork():
            return "template-too-large", text, _LESS
        case SecurityError():
            message = f"the prompt tries to leave its sandbox: {text}"
            return "template-escape", message, f"remove it, or {RAW_HINT}"
        case UndefinedError():
            message = f"the prompt uses a value that is not there: {text}"
            return "undefined-variable", message, "write {{ … | default('…') }}, or remove it"
        case RecursionError() | MemoryError():
            return "template-too-large", "the prompt is nested too deep", _LESS
        case TemplateError():
            return "template-error", f"the prompt cannot be rendered: {text}", _REMOVE
    message = f"the prompt cannot be rendered: {type(error).__name__}: {text}"
    match error:
        case TypeError() if "not iterable" in text:
            return "template-error", message, "loop over a text or a list, or over range(…)"
        case TypeError():
            return "template-error", message, _CONVERT
        case ZeroDivisionError():
            return "template-error", message, "divide by another number than 0"
        case _:
            return "template-error", message, _REMOVE


def _place(error: Exception, code: CodeType | None, source: str) -> int:
    trace: TracebackType | None = error.__traceback__
    if code is None:
        return 0
    template = Template.from_code(PromptSandbox(Budget()), code, {})
    place = 0
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == FILE_NAME:
            place = template.get_corresponding_lineno(trace.tb_lineno) - 1
        trace = trace.tb_next
    return min(max(place, 0), max(len(source) - 1, 0))
