"""Prompts: what is wrong with a template, and its text for one conversation.

White space is Jinja's own: a line with only a tag leaves its line break, `-` inside a tag eats
the white space on its side, the last line break of the prompt stays. Values are inserted as they
are, never escaped for HTML. Checking and rendering go through the same sandbox, so what
`validate` accepts renders the same way in a conversation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from types import CodeType

from jinja2.exceptions import TemplateSyntaxError

from capuchin_yaml.compiler.budget import Budget
from capuchin_yaml.compiler.sandbox import PaidFor, PromptSandbox
from capuchin_yaml.compiler.template_run import FILE_NAME, render_problem, rendered
from capuchin_yaml.compiler.template_tags import (
    MOST_CHARS,
    never_closed,
    opening_before,
    without_opening,
    without_value,
)
from capuchin_yaml.compiler.template_walk import RAW_HINT, TemplateProblem, Walk, token_end
from capuchin_yaml.errors import InvalidAgent
from capuchin_yaml.spec import JsonValue

_NEVER_CLOSED = re.compile(r"innermost block that needs to be closed is '(\w+)'")
_EMPTY = "write some text outside of the tags, or give the variables a default"
_HALF = r"write the whole character, such as '\U0001f642'"
_MOST_RENDERED = 20
"""Mistakes of one prompt that are looked for by rendering it."""


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
    found: list[TemplateProblem] = []
    text, read = source, 0
    while True:
        read += len(source)
        walk = Walk(source, known)
        try:
            walk.visit(_reader().parse(text), set())
            if not found and not walk.problems:
                _code(source)
        except TemplateSyntaxError as error:
            problem = _syntax_problem(text, error)
            if not _follows(problem, error, source, found):
                found.append(problem)
            rest = without_opening(text, problem.start)
            if rest is None or read > MOST_CHARS:
                return CheckedTemplate(tuple(found), frozenset(), False)
            text = rest
        except (RecursionError, MemoryError, SyntaxError):
            return _unreadable("the template is nested too deep")
        except ValueError:
            # Python's own bound on the digits of a number.
            return _unreadable("the template holds a number that is too large")
        else:
            break
    # A tag that cannot be read may have been the one that gives a name its value.
    unsure = any(source[opening_before(source, p.start) :][:2] == "{%" for p in found)
    found += [p for p in walk.problems if not (unsure and p.id == "undefined-variable")]
    return CheckedTemplate(tuple(found), frozenset(walk.used), text == source)


def _follows(
    problem: TemplateProblem,
    error: TemplateSyntaxError,
    source: str,
    found: Sequence[TemplateProblem],
) -> bool:
    """Whether it is only the end or a branch of a tag that was reported."""
    is_part = "unknown tag 'e" in (error.message or "")
    return is_part and any(
        source[opening_before(source, p.start) :][:2] == "{%" and p.start < problem.start
        for p in found
    )


def _unreadable(message: str) -> CheckedTemplate:
    return CheckedTemplate(
        (TemplateProblem("template-syntax", message, 0, 0, RAW_HINT),), frozenset(), False
    )


def render_problems(
    source: str, variables: Mapping[str, JsonValue], known: Sequence[int] = ()
) -> tuple[TemplateProblem, ...]:
    """The mistakes that show when the template is rendered with these values.

    `known` are places of other mistakes, whose tags are left out.
    """
    # Why as text: True and 1 are one key of a cache, and not one value in a prompt.
    return _render_problems(source, json.dumps(dict(variables)), tuple(known))


@lru_cache(maxsize=64)
def _render_problems(
    source: str, variables: str, known: tuple[int, ...]
) -> tuple[TemplateProblem, ...]:
    text: str | None = source
    for place in known:
        # A tag with several mistakes is out after the first.
        if text is not None and not text[place : place + 1].isspace():
            text = without_value(text, place)
    found: list[TemplateProblem] = []
    read = 0
    while text is not None and read <= MOST_CHARS and len(found) < _MOST_RENDERED:
        read += len(text)
        outcome = _outcome(text, json.loads(variables))
        if not isinstance(outcome, TemplateProblem):
            break
        if outcome.start == outcome.end and text != source:
            break  # what is left of it says nothing of the whole
        found.append(outcome)
        text = without_value(text, outcome.start)
    return tuple(found)


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
        text = rendered(_code(source), variables)
    except TemplateSyntaxError as error:
        return _syntax_problem(source, error)
    except Exception as error:
        try:
            code: CodeType | None = _code(source)
        except Exception:
            code = None  # it failed while it was compiled
        return render_problem(error, code, source)
    if not text.strip():
        return TemplateProblem(
            "empty-prompt", "the prompt is empty once its values are filled in", 0, 0, _EMPTY
        )
    if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
        return TemplateProblem(
            "template-error", "the prompt holds half a character (a lone surrogate)", 0, 0, _HALF
        )
    return text


@lru_cache(maxsize=64)
def _code(source: str) -> CodeType:
    sandbox = _reader()
    tree = PaidFor().visit(sandbox.parse(source))
    return sandbox.compile(tree, filename=FILE_NAME)


@cache
def _reader() -> PromptSandbox:
    """A sandbox that only reads and compiles, so that nothing is ever paid from its budget."""
    return PromptSandbox(Budget())


def _syntax_problem(source: str, error: TemplateSyntaxError) -> TemplateProblem:
    place = min(max(error.lineno - 1, 0), max(len(source) - 1, 0))
    message = error.message or "the template cannot be read"
    first = message.splitlines()[0].split(" Jinja was looking for", 1)[0].rstrip(".")
    if first.startswith("Missing end of") or "end of template" in first.casefold():
        block = _NEVER_CLOSED.search(message)
        opening = never_closed(source, block.group(1)) if block is not None else -1
        place = opening if opening >= 0 else _last_opening(source, place)
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
    found = opening_before(source, place)
    return found if found >= 0 else place
