"""The template language of prompts: Jinja2's sandbox, narrowed to what a prompt needs.

A prompt sees texts, numbers, lists and maps. It reads no attribute but a few text methods, calls
nothing else, loads no other file, and pays for all its work from a `Budget`. Tokens carry their
place in the source as their "line", so every node and error of Jinja has an exact position.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from types import BuiltinMethodType
from typing import Any, NoReturn

from jinja2 import StrictUndefined, nodes, pass_context
from jinja2.exceptions import SecurityError, TemplateRuntimeError, TemplateSyntaxError
from jinja2.filters import FILTERS as ALL_FILTERS
from jinja2.lexer import TokenStream
from jinja2.runtime import LoopContext, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.tests import TESTS as ALL_TESTS
from jinja2.utils import Namespace
from jinja2.visitor import NodeTransformer

from capuchin_yaml.compiler.budget import MAX_STEPS, Budget, TooMuchWork

TEXT_METHODS = frozenset(
    {
        *("capitalize", "count", "endswith", "find", "lower", "lstrip", "removeprefix"),
        *("removesuffix", "replace", "rstrip", "split", "startswith", "strip", "title", "upper"),
    }
)
MAP_METHODS = frozenset({"get", "items", "keys", "values"})
LOOP_ATTRIBUTES = frozenset(
    {
        *("changed", "cycle", "depth", "depth0", "first", "index", "index0", "last", "length"),
        *("nextitem", "previtem", "revindex", "revindex0"),
    }
)
FILTERS = frozenset(
    {
        *("abs", "capitalize", "count", "d", "default", "first", "float", "indent", "int"),
        *("join", "last", "length", "list", "lower", "max", "min", "replace", "reverse"),
        *("round", "sort", "string", "title", "tojson", "trim", "truncate", "unique"),
        *("upper", "wordcount"),
    }
)
TESTS = frozenset(
    {
        *("boolean", "defined", "divisibleby", "even", "false", "float", "integer", "iterable"),
        *("mapping", "none", "number", "odd", "sequence", "string", "true", "undefined"),
    }
)
GLOBALS = frozenset({"range", "dict", "namespace"})

_EACH = "(each)"
_TOUCHED = "(touched)"
_MAX_WIDTH = 100


class PromptSandbox(ImmutableSandboxedEnvironment):
    """The Jinja2 environment of one rendering, or of one check."""

    intercepted_binops = frozenset({"+", "-", "*", "/", "//", "%", "**"})

    def __init__(self, budget: Budget) -> None:
        super().__init__(
            undefined=StrictUndefined,
            autoescape=False,
            keep_trailing_newline=True,
            # Why: constants would be computed while compiling, where nothing is paid for.
            optimized=False,
            finalize=_finalize,
            cache_size=0,
        )
        self.budget = budget
        self.globals = {"range": self._range, "dict": dict, "namespace": Namespace}
        self.tests = {name: ALL_TESTS[name] for name in TESTS}
        own = {
            "indent": self._indent,
            "join": self._join,
            "replace": self._replace,
            "round": _round,
            "tojson": _to_json,
            "string": _string,
        }
        self.filters = {
            **{name: self._paid(own.get(name, ALL_FILTERS[name])) for name in FILTERS},
            _EACH: self._each,
            _TOUCHED: self._touched,
        }

    def _tokenize(
        self,
        source: str,
        name: str | None,
        filename: str | None = None,
        state: str | None = None,
    ) -> TokenStream:
        tokens = self.lexer.wrap(self._placed_tokens(source), name, filename)
        return TokenStream(tokens, name, filename)

    def _placed_tokens(self, source: str) -> Iterator[tuple[int, str, str]]:
        place = 0
        opened = 0
        tokens = self.lexer.tokeniter(source, None)
        while True:
            try:
                _, kind, value = next(tokens)
            except StopIteration:
                return
            except TemplateSyntaxError as error:
                unclosed = (error.message or "").startswith("Missing end")
                raise TemplateSyntaxError(
                    error.message or "", (opened if unclosed else place) + 1
                ) from error
            # The lexer leaves out white space before `{%-`; everything else follows on.
            place = max(source.find(value, place), place)
            if kind.endswith("_begin"):
                opened = place
            yield place + 1, kind, value
            place += len(value)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        if isinstance(obj, str):
            return attr in TEXT_METHODS
        if isinstance(obj, dict):
            return attr in MAP_METHODS
        if isinstance(obj, LoopContext):
            return attr in LOOP_ATTRIBUTES
        return isinstance(obj, Namespace) and not attr.startswith("_")

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        # Why: the sandbox's own `format` has no bound on its widths; here it is no text method.
        return None

    def is_safe_callable(self, obj: Any) -> bool:
        if obj == self._range or obj is dict or obj is Namespace:
            return True
        owner = getattr(obj, "__self__", None)
        if isinstance(obj, BuiltinMethodType) and isinstance(owner, str | dict):
            return obj.__name__ in TEXT_METHODS | MAP_METHODS
        return isinstance(owner, LoopContext)

    def call(__self, __context: Any, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        self, obj = __self, __obj
        owner = getattr(obj, "__self__", None)
        self.budget.touch(*args, *kwargs.values())
        if isinstance(owner, str | dict):
            self.budget.touch(owner)
            if getattr(obj, "__name__", "") == "replace":
                return self._replace(owner, *args, **kwargs)
        return super().call(__context, obj, *args, **kwargs)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        self.budget.touch(left, right)
        if operator == "*":
            for many, times in ((left, right), (right, left)):
                if isinstance(many, str | list | tuple) and isinstance(times, int):
                    self.budget.spend(max(times, 0) * len(many))
        elif operator == "%" and isinstance(left, str):
            raise SecurityError("texts are not formatted with '%' in a prompt")
        elif operator == "**" and isinstance(right, int | float) and abs(right) > _MAX_WIDTH:
            raise TooMuchWork("the prompt computes a number that is too large")
        result = super().call_binop(context, operator, left, right)
        self.budget.touch(result)
        return result

    def getitem(self, obj: Any, argument: Any) -> Any:
        self.budget.touch(argument)
        return super().getitem(obj, argument)

    def _paid(self, function: Callable[..., Any]) -> Callable[..., Any]:
        # Jinja gives some of its filters the environment or the context first.
        own = 1 if hasattr(function, "jinja_pass_arg") else 0

        @wraps(function)
        def paid(*args: Any, **kwargs: Any) -> Any:
            self.budget.touch(*args[own:], *kwargs.values())
            result = function(*args, **kwargs)
            if isinstance(result, Iterator):
                result = list(result)
            self.budget.touch(result)
            return result

        return paid

    def _touched(self, value: Any) -> Any:
        self.budget.touch(value)
        return value

    def _each(self, values: Any, cost: int) -> Iterator[Any]:
        """What a `for` loop goes through; each step pays for the loop's body."""
        if not isinstance(values, Iterable) or isinstance(values, Undefined):
            iter(values)  # raises what Jinja would have raised
        for value in values:
            self.budget.spend(cost)
            yield value

    def _range(self, *args: Any) -> range:
        numbers = range(*args)
        # Why: the length of a very long range does not even fit `len`.
        if len(numbers[: MAX_STEPS + 1]) > MAX_STEPS:
            raise TooMuchWork(f"range is longer than {MAX_STEPS}")
        return numbers

    def _replace(self, value: Any, old: Any, new: Any, count: Any = -1) -> str:
        text, old, new = str(value), str(old), str(new)
        count = -1 if count is None else int(count)
        times = text.count(old) if count < 0 else min(text.count(old), count)
        self.budget.spend(times * len(new))
        return text.replace(old, new, count)

    def _join(self, value: Any, d: Any = "", attribute: None = None) -> str:
        if attribute is not None:
            raise TemplateRuntimeError("join takes no attribute in a prompt")
        texts = [str(item) for item in value]
        self.budget.spend(len(texts) * len(str(d)))
        return str(d).join(texts)

    def _indent(self, s: Any, width: Any = 4, first: bool = False, blank: bool = False) -> str:
        if not isinstance(width, int) or not 0 <= width <= _MAX_WIDTH:
            raise TemplateRuntimeError(f"indent takes a width from 0 to {_MAX_WIDTH}")
        lines = str(s).split("\n")
        self.budget.spend(len(lines) * width)
        pad = " " * width
        return "\n".join(
            pad + line if (i > 0 or first) and (line or blank) else line
            for i, line in enumerate(lines)
        )


class PaidFor(NodeTransformer):
    """Makes a template pay for the work that Jinja's sandbox cannot see."""

    def visit_For(self, node: nodes.For) -> nodes.For:
        cost = 1 + sum(_cost(child) for child in node.body)
        self.generic_visit(node)
        node.iter = _through(node.iter, _EACH, nodes.Const(cost))
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Concat:
        self.generic_visit(node)
        node.nodes = [_through(child, _TOUCHED) for child in node.nodes]
        return node

    def visit_Compare(self, node: nodes.Compare) -> nodes.Compare:
        self.generic_visit(node)
        node.expr = _through(node.expr, _TOUCHED)
        for operand in node.ops:
            operand.expr = _through(operand.expr, _TOUCHED)
        return node

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Getitem:
        self.generic_visit(node)
        if isinstance(node.arg, nodes.Slice):
            node.node = _through(node.node, _TOUCHED)
        return node


@pass_context
def _finalize(context: Any, value: Any) -> str:
    # Why: a function that takes the context is never run while compiling.
    context.environment.budget.touch(value)
    return str(value)


def _string(value: Any) -> str:
    return str(value)


def _to_json(value: Any, indent: Any = None) -> str:
    if indent is not None and (not isinstance(indent, int) or not 0 <= indent <= 8):
        raise TemplateRuntimeError("tojson takes an indent from 0 to 8")
    return json.dumps(value, ensure_ascii=False, indent=indent, default=_no_json)


def _no_json(value: object) -> NoReturn:
    if isinstance(value, Undefined):
        str(value)  # raises what a strict undefined name raises
    raise TemplateRuntimeError(f"tojson cannot write {type(value).__name__}")


def _round(value: Any, precision: Any = 0) -> float:
    if not isinstance(precision, int) or abs(precision) > 20:
        raise TemplateRuntimeError("round takes a precision from -20 to 20")
    return round(float(value), precision)


def _through(node: nodes.Node, name: str, *args: nodes.Expr) -> nodes.Filter:
    return nodes.Filter(node, name, [*args], [], None, None, lineno=node.lineno)


def _cost(node: nodes.Node) -> int:
    if isinstance(node, nodes.TemplateData):
        return 1 + len(node.data)
    return 1 + sum(_cost(child) for child in node.iter_child_nodes())
