"""Prompts: what is wrong with a template, and its text for one conversation.

White space is Jinja's own: a line with only a tag leaves its line break, `-` inside a tag eats
the white space on its side, the last line break of the prompt stays. Values are inserted as they
are, never escaped for HTML. Checking and rendering go through the same sandbox, so what
`validate` accepts renders the same way in a conversation.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from types import CodeType, TracebackType

from jinja2 import Template, TemplateError
from jinja2.exceptions import SecurityError, TemplateSyntaxError, UndefinedError

from capuchin_yaml.compiler.budget import MAX_PROMPT_CHARS, Budget, TooMuchWork
from capuchin_yaml.compiler.sandbox import PaidFor, PromptSandbox
from capuchin_yaml.compiler.template_walk import RAW_HINT, TemplateProblem, Walk, token_end
from capuchin_yaml.errors import InvalidAgent
from capuchin_yaml.spec import JsonValue


@dataclass(frozen=True, slots=True)
class CheckedTemplate:
    """What is wrong with a template, and which names it uses."""

    problems: tuple[TemplateProblem, ...]
    used: frozenset[str]
    parsed: bool


@lru_cache(maxsize=64)
def check_template(source: str, known: frozenset[str]) -> CheckedTemplate:
    """Find every mistake that shows without rendering, in all branches.

    `known` are the names that the prompt may use besides the language's own.
    """
    walk = Walk(source, known)
    try:
        walk.visit(_reader().parse(source), set())
        if not walk.problems:
            _code(source)
    except TemplateSyntaxError as error:
        return CheckedTemplate((_syntax_problem(source, error),), frozenset(), False)
    except (RecursionError, MemoryError, SyntaxError):
        return _unreadable("the template is nested too deep")
    except ValueError:
        # Python's own bound on the digits of a number.
        return _unreadable("the template holds a number that is too large")
    return CheckedTemplate(tuple(walk.problems), frozenset(walk.used), True)


def _unreadable(message: str) -> CheckedTemplate:
    return CheckedTemplate((TemplateProblem("template-syntax", message, 0, 0),), frozenset(), False)


def render_problem(source: str, variables: Mapping[str, JsonValue]) -> TemplateProblem | None:
    """The mistake that shows when the template is rendered with these values, or None."""
    # Why as text: True and 1 are one key of a cache, and not one value in a prompt.
    return _render_problem(source, json.dumps(dict(variables)))


@lru_cache(maxsize=64)
def _render_problem(source: str, variables: str) -> TemplateProblem | None:
    outcome = _outcome(source, json.loads(variables))
    return outcome if isinstance(outcome, TemplateProblem) else None


def render_prompt(source: str, variables: Mapping[str, JsonValue]) -> str:
    """The text of a prompt for one conversation; work and size are bounded.

    Raises:
        InvalidAgent: the template cannot be rendered with these values, or gives no text.
    """
    outcome = _outcome(source, variables)
    if isinstance(outcome, TemplateProblem):
        line = source.count("\n", 0, outcome.start) + 1
        raise InvalidAgent(f"line {line} of the prompt: {outcome.message}")
    return outcome


def _outcome(source: str, variables: Mapping[str, JsonValue]) -> str | TemplateProblem:
    try:
        text = _render(source, variables)
    except TemplateSyntaxError as error:
        return _syntax_problem(source, error)
    except Exception as error:
        place = _place_in_template(error, source)
        id_, message = _render_message(error)
        return TemplateProblem(id_, message, place, token_end(source, place))
    if not text.strip():
        return TemplateProblem(
            "empty-prompt", "the prompt is empty once its values are filled in", 0, 0
        )
    if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
        return TemplateProblem(
            "template-error", "the prompt holds half a character (a lone surrogate)", 0, 0
        )
    return text


def _render(source: str, variables: Mapping[str, JsonValue]) -> str:
    sandbox = PromptSandbox(Budget())
    template = Template.from_code(sandbox, _code(source), sandbox.globals)
    context = template.new_context(dict(variables))
    parts: list[str] = []
    length = 0
    for part in template.root_render_func(context):
        parts.append(part)
        length += len(part)
        if length > MAX_PROMPT_CHARS:
            raise TooMuchWork(f"the prompt is longer than {MAX_PROMPT_CHARS} characters")
    return "".join(parts)


@lru_cache(maxsize=64)
def _code(source: str) -> CodeType:
    sandbox = _reader()
    tree = PaidFor().visit(sandbox.parse(source))
    return sandbox.compile(tree, filename="<prompt>")


@cache
def _reader() -> PromptSandbox:
    """A sandbox that only reads and compiles, so that nothing is ever paid from its budget."""
    return PromptSandbox(Budget())


def _syntax_problem(source: str, error: TemplateSyntaxError) -> TemplateProblem:
    place = min(max(error.lineno - 1, 0), max(len(source) - 1, 0))
    message = error.message or "the template cannot be read"
    first = message.splitlines()[0].split(" Jinja was looking for", 1)[0].rstrip(".")
    if first.startswith("Missing end of") or "end of template" in first.casefold():
        place = _last_opening(source, place)
        first = "this tag is never closed"
    return TemplateProblem(
        "template-syntax",
        f"the prompt is no valid template here: {first}",
        place,
        token_end(source, place),
        RAW_HINT,
    )


def _last_opening(source: str, place: int) -> int:
    if source[place : place + 2] in ("{{", "{%", "{#"):
        return place
    found = max(source.rfind(mark, 0, place + 1) for mark in ("{{", "{%", "{#"))
    return found if found >= 0 else place


def _render_message(error: Exception) -> tuple[str, str]:
    text = (str(error).splitlines() or [type(error).__name__])[0]
    match error:
        case TooMuchWork():
            return "template-too-large", text
        case SecurityError():
            return "template-escape", f"the prompt tries to leave its sandbox: {text}"
        case UndefinedError():
            return "undefined-variable", f"the prompt uses a value that is not there: {text}"
        case RecursionError() | MemoryError():
            return "template-too-large", "the prompt is nested too deep"
        case TemplateError():
            return "template-error", f"the prompt cannot be rendered: {text}"
        case _:
            return (
                "template-error",
                f"the prompt cannot be rendered: {type(error).__name__}: {text}",
            )


def _place_in_template(error: Exception, source: str) -> int:
    """The place of the node that was rendered when `error` was raised."""
    trace: TracebackType | None = error.__traceback__
    try:
        template = Template.from_code(PromptSandbox(Budget()), _code(source), {})
    except Exception:
        return 0  # it failed while it was compiled
    place = 0
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "<prompt>":
            place = template.get_corresponding_lineno(trace.tb_lineno) - 1
        trace = trace.tb_next
    return min(max(place, 0), max(len(source) - 1, 0))
