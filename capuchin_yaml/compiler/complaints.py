"""What the schema complains of, keyword by keyword, in the words of the file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from capuchin_yaml.compiler.certain_values import certain_value
from capuchin_yaml.compiler.document import Document, Node, Path
from capuchin_yaml.compiler.example_lines import example_line
from capuchin_yaml.compiler.repairs import EMPTY_PROMPT, amount_repair, empty_repair, repair_for
from capuchin_yaml.compiler.schemas import careful_validator
from capuchin_yaml.compiler.unknown_keys import Schema
from capuchin_yaml.compiler.wording import either, expected, found, place_name, shown
from capuchin_yaml.compiler.words import LATER_VALUES
from capuchin_yaml.diagnostics import Annotation, Diagnostic, Edit, Severity, Span
from capuchin_yaml.spec import JsonValue

_BAD_IDS: Mapping[str, str] = {
    "duration": "bad-duration",
    "amount": "bad-amount",
    "Currency": "bad-currency",
    "Agent name": "bad-name",
    "Alias": "bad-name",
    "name": "bad-name",
    "range of versions": "bad-range",
    "tool reference": "bad-tool-name",
    "tool or alias": "bad-tool-name",
    "Model name": "bad-model",
    "address": "bad-address",
    "variable of the environment": "bad-name",
}


class Complaints:
    """Collects one diagnostic for each complaint about the values of a file."""

    def __init__(self, document: Document, schema: Schema, base: Path) -> None:
        self._document = document
        self._schema = schema
        self._base = base
        self.found: list[Diagnostic] = []
        self.explained: set[tuple[Path, str]] = set()
        """Missing keys that an unknown key of the same map stands for."""

    def report(
        self,
        id_: str,
        message: str,
        span: Span,
        help_: str | None = None,
        fix: str | None = None,
    ) -> None:
        edit = Edit(span, fix) if fix is not None else None
        self.found.append(Diagnostic(id_, Severity.ERROR, message, span, help_, fix=edit))

    def keyword(self, error: Any, path: Path, node: Node) -> None:
        """Report what a keyword that has no branches says of the value at `path`."""
        handler = getattr(self, f"_on_{error.validator}", None)
        if handler is not None:
            handler(error, path, node)
        else:
            self.report("bad-value", f"{place_name(path)}: {shown(error.message)}", node.span)

    def not_text(self, error: Any, path: Path) -> None:
        """What is wrong with a place for a variable: only that it takes no text at all."""
        probe = {**error.schema, "$defs": self._schema.get("$defs", {})}
        probe = {k: v for k, v in probe.items() if k in ("type", "anyOf", "oneOf", "$ref", "$defs")}
        if not careful_validator()(probe).is_valid("text"):
            self.report(
                "wrong-type",
                f"{place_name(path)} must be {expected(error.schema, self._schema)}, "
                "and a value from the environment is text",
                self._document.value_span(path),
                self._example(path, error.schema),
            )

    def wrong_type(
        self, wanted: str, path: Path, node: Node, schema: Mapping[str, JsonValue]
    ) -> None:
        name = place_name(path)
        if node.kind == "scalar" and node.value is None:
            self.report(
                "empty-value",
                f"{name} is empty, expected {wanted}",
                self._document.key_span(path),
                empty_repair(path),
            )
            return
        if schema.get("title") == "amount" and isinstance(node.value, float):
            self.report(
                "bad-amount",
                f"{name} must be in quotes, because {found(node)} would be a float",
                node.span,
                amount_repair(node.text, with_currency=False),
                certain_value(path, node, schema),
            )
            return
        self.report(
            "wrong-type",
            f"{name} must be {wanted}, found {found(node)}",
            node.span,
            repair_for(path, node, schema) or self._example(path, schema),
            certain_value(path, node, schema),
        )

    def _on_required(self, error: Any, path: Path, node: Node) -> None:
        match = re.match(r"'(.*)' is a required property", error.message)
        key = match.group(1) if match else ""
        if (path, key) in self.explained:
            return
        if path[len(self._base) :] == ("approval",):
            self._list_missing(path, node.entries["policy"].node)
            return
        if path == ("budget",):
            self.report(
                "missing-key",
                "budget has neither max_usd nor max_tokens",
                self._map_start(path, node),
                'add max_usd: "2.00"',
            )
            return
        reason = ""
        if path == ("price",):
            kind = node.entries.get("type")
            reason = f", which {kind.node.text} needs" if kind is not None else ""
        example = repair_for((*path, key), node, {}, missing=True)
        if example is None:
            property_ = error.schema.get("properties", {}).get(key, {})
            example = self._example((*path, key), property_, "add") or f"add {key}: …"
        self.report(
            "missing-key",
            f"{place_name(path)} has no {shown(key)}{reason}",
            self._map_start(path, node),
            example,
        )

    def _on_dependentRequired(self, _error: Any, path: Path, node: Node) -> None:
        self.report(
            "missing-key",
            f"{place_name(path)} has a list of tools but no policy that takes it",
            node.entries["tools"].key,
            "add policy: allowlist, or policy: denylist",
        )

    def _on_enum(self, error: Any, path: Path, node: Node) -> None:
        dotted = ".".join(str(step) for step in path)
        if path == ("approval",) and node.text in ("allowlist", "denylist"):
            self._list_missing(path, node)
        elif node.text in LATER_VALUES.get(dotted, frozenset()):
            self.report(
                "later-key",
                f"this version does not carry out {place_name(path)}: {node.text} yet",
                node.span,
                f"use {either([str(value) for value in error.schema['enum']])}",
            )
        else:
            wanted = either([str(value) for value in error.schema["enum"]])
            self.report(
                "unknown-value",
                f"{place_name(path)} must be {wanted}, found {found(node)}",
                node.span,
                repair_for(path, node, error.schema) or self._choices(path, error.schema),
                certain_value(path, node, error.schema),
            )

    def _list_missing(self, path: Path, policy: Node) -> None:
        self.report(
            "list-missing",
            f"the policy {policy.text} needs a list of tools and has none",
            policy.span,
            f"approval: {{policy: {policy.text}, tools: [package.tool]}}",
        )

    def _on_pattern(self, error: Any, path: Path, node: Node) -> None:
        title = str(error.schema.get("title", ""))
        if not node.text:
            help_ = self._example(path, error.schema) or "remove the line"
            self.report("empty-value", f"{place_name(path)} is empty", node.span, help_)
            return
        wanted = expected(error.schema, self._schema)
        if "examples" not in error.schema:
            # A package's own schema: its pattern is all that is known.
            wanted = f"text that fits {shown(str(error.validator_value))}"
        self.report(
            _BAD_IDS.get(title, "bad-value"),
            f"{place_name(path)} must be {wanted}, found {found(node)}",
            node.span,
            repair_for(path, node, error.schema) or self._example(path, error.schema),
            certain_value(path, node, error.schema),
        )

    def property_name(self, error: Any, path: Path, node: Node) -> None:
        entry = node.entries.get(str(error.instance))
        self.report(
            "bad-name",
            f"{shown(str(error.instance))} is not a name for {place_name(path)}: "
            "a letter or '_', then letters, digits and '_'",
            entry.key if entry is not None else node.span,
            f"write {_as_name(str(error.instance)) or 'a_name'}",
        )

    def _on_minimum(self, error: Any, path: Path, node: Node) -> None:
        id_ = "bad-amount" if error.schema.get("title") == "amount" else "out-of-range"
        self.report(
            id_,
            f"{place_name(path)} must be at least {error.validator_value}, found {found(node)}",
            node.span,
            f"write {error.validator_value} or more"
            if id_ == "out-of-range"
            else amount_repair(node.text.lstrip("-"), with_currency=False),
        )

    def _on_maximum(self, error: Any, path: Path, node: Node) -> None:
        self.report(
            "out-of-range",
            f"{place_name(path)} must be at most {error.validator_value}, found {found(node)}",
            node.span,
            f"write {error.validator_value} or less",
        )

    def _on_minLength(self, error: Any, path: Path, node: Node) -> None:
        id_, help_ = "empty-value", self._example(path, error.schema) or "remove the line"
        if path == ("prompt",):
            id_, help_ = "empty-prompt", EMPTY_PROMPT
        self.report(id_, f"{place_name(path)} is empty", self._document.key_span(path), help_)

    def _on_maxLength(self, error: Any, path: Path, node: Node) -> None:
        self.report(
            "too-long",
            f"{place_name(path)} has {len(node.text)} characters, "
            f"at most {error.validator_value} are kept",
            self._document.key_span(path),
            f"remove {len(node.text) - error.validator_value} characters",
        )

    def _on_minItems(self, error: Any, path: Path, node: Node) -> None:
        help_ = self._example(path, error.schema) or "remove the line"
        self.report("empty-value", f"{place_name(path)} is an empty list", node.span, help_)

    def _on_minProperties(self, error: Any, path: Path, node: Node) -> None:
        help_ = self._example(path, error.schema) or empty_repair(path)
        if path == ("approval",):
            help_ = "approval: all"
        self.report("empty-value", f"{place_name(path)} is an empty map", node.span, help_)

    def _on_maxItems(self, error: Any, path: Path, node: Node) -> None:
        self.report(
            "out-of-range",
            f"{place_name(path)} has {len(node.items)} entries, at most {error.validator_value}",
            node.span,
            f"remove {len(node.items) - error.validator_value} of them",
        )

    def _on_uniqueItems(self, _error: Any, path: Path, node: Node) -> None:
        for i, item in enumerate(node.items):
            first = next((other for other in node.items[:i] if other.value == item.value), None)
            if first is not None:
                self.found.append(
                    Diagnostic(
                        "listed-twice",
                        Severity.ERROR,
                        f"{place_name(path)} names {shown(item.text)} twice",
                        item.span,
                        "keep one of them",
                        (Annotation(first.span, "first here"),),
                    )
                )

    def _on_not(self, _error: Any, path: Path, _node: Node) -> None:
        """A key that another value of the same map rules out."""
        owner = self._document.node(path[:-1])
        assert owner is not None
        decider = owner.entries.get("policy") or owner.entries.get("type")
        value = decider.node.text if decider is not None else "it"
        if path[0] == "approval":
            message = f"the policy {value} takes no list of tools"
            help_: str | None = "remove the list, or write policy: allowlist or policy: denylist"
        else:
            message = f"{place_name(path[:-1])} is {value} and takes no {shown(str(path[-1]))}"
            per = "per_token" if path[-1] in ("input", "output", "unit") else "per_call"
            help_ = f"remove the line, or write type: {per}"
        self.report("needless-key", message, self._document.key_span(path), help_)

    def _example(
        self, path: Path, schema: Mapping[str, JsonValue], verb: str = "write"
    ) -> str | None:
        return example_line(path, schema, self._schema, verb)

    def _choices(self, path: Path, schema: Mapping[str, JsonValue]) -> str | None:
        """Every choice; a default is none that was meant."""
        return self._example(path, {"enum": schema["enum"]})

    def _map_start(self, path: Path, node: Node) -> Span:
        if path and isinstance(path[-1], str):
            return self._document.key_span(path)
        first = next(iter(node.entries.values()), None)
        return first.key if first is not None else node.span


def _as_name(text: str) -> str:
    """What a text may have meant as a name, empty when nothing of it is left."""
    name = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_")[:64]
    return f"_{name}" if name[:1].isdigit() else name
