"""Document -> diagnostics of the agent schema, in the words of the file.

schemas/agent.v1.schema.json says what is right; this module finds the place of each of its
complaints, and `complaints` says what was found there and what to type instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from capuchin_yaml.compiler.complaints import Complaints
from capuchin_yaml.compiler.document import Document, Node, Path
from capuchin_yaml.compiler.schemas import (
    agent_schema,
    careful_validator,
    inlined,
    quick_validator,
)
from capuchin_yaml.compiler.unknown_keys import Schema, unknown_key
from capuchin_yaml.compiler.wording import expected, found, place_name, shown
from capuchin_yaml.diagnostics import Diagnostic, Severity
from capuchin_yaml.policy.needs import variable_of
from capuchin_yaml.spec import JsonValue

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


@dataclass(frozen=True, slots=True)
class Checked:
    """What a schema refuses, and the paths whose values are not to be read any further."""

    diagnostics: tuple[Diagnostic, ...] = ()
    bad_paths: frozenset[Path] = frozenset()

    def usable(self, path: Path) -> bool:
        """Whether neither the value at `path` nor one around or inside it was refused."""
        if not self.bad_paths:
            return True
        return not any(bad[: len(path)] == path[: len(bad)] for bad in self.bad_paths)


def check(document: Document) -> Checked:
    """Everything that the agent schema refuses in a readable file, in no special order."""
    root = document.root
    if root is None:
        return Checked()
    if root.kind != "map":
        problem = Diagnostic(
            "wrong-type",
            Severity.ERROR,
            f"an agent file is a map of keys, found {found(root)}",
            root.span,
            "start with: apiVersion: capuchin/v1",
        )
        return Checked((problem,), frozenset({()}))
    checker = _Checker(document, agent_schema(), "agent")
    checker.skip_misplaced_variables()
    return checker.run()


def check_whole(document: Document, schema: Mapping[str, JsonValue], subject: str) -> Checked:
    """What the schema of another kind of file than an agent refuses in a readable file."""
    root = document.root
    if root is None:
        return Checked()
    if root.kind != "map":
        message = f"{subject} is a map of keys, found {found(root)}"
        problem = Diagnostic("wrong-type", Severity.ERROR, message, root.span)
        return Checked((problem,), frozenset({()}))
    return _Checker(document, schema, subject).run()


def check_config(
    document: Document, path: Path, config_schema: Mapping[str, JsonValue], subject: str
) -> Checked:
    """What a tool package's own schema refuses in the value at `path`.

    Raises:
        ValueError: the package's schema is not a JSON Schema, or refers to another file.
    """
    import jsonschema
    from referencing.exceptions import Unresolvable

    try:
        checker = _Checker(document, config_schema, subject, path)
        checker.skip_variables()
        return checker.run()
    except (jsonschema.SchemaError, Unresolvable) as error:
        raise ValueError(str(error).splitlines()[0]) from error


class _Checker:
    def __init__(self, document: Document, schema: Schema, subject: str, path: Path = ()) -> None:
        self._document = document
        self._schema = schema
        self._subject = subject
        """`agent`, or what a package's config belongs to."""
        self._base = path
        self._skipped: list[Path] = []
        self._complaints = Complaints(document, schema, path)
        self._bad_paths: set[Path] = set()
        self._wrong_types: set[Path] = set()
        self._variables: set[Path] = set()
        """Where `{env: NAME}` stands for a text."""

    def run(self) -> Checked:
        node = self._document.node(self._base)
        assert node is not None
        if not self._base and not self._complaints.found and self._is_right(node):
            return Checked()
        from referencing import Registry

        validator_class = careful_validator()
        if self._base:
            validator_class.check_schema(self._schema)
        # Why: without a registry of its own jsonschema would fetch a `$ref` from the network.
        schema, value = self._schema, node.value
        if not self._base:
            schema, value = inlined(self._subject, self._schema), _without_notes(node)
        validator = validator_class(schema, registry=Registry())
        errors = list(validator.iter_errors(value))
        self._wrong_types = {self._path(error) for error in _type_errors(errors)}
        for error in errors:
            self._unknown_keys_first(error)
        for error in errors:
            self._translate(error)
        return Checked(tuple(self._complaints.found), frozenset(self._bad_paths))

    def _is_right(self, node: Node) -> bool:
        """Whether one of our own schemas has nothing to say, which is quick to find out."""
        validator = quick_validator(self._subject, self._schema)
        try:
            has_notes = "x-" in self._document.written
            return bool(validator.is_valid(_without_notes(node) if has_notes else node.value))
        except ValueError:
            # Half a character, or a number that it cannot hold: the slow way knows what to say.
            return False

    def skip_variables(self) -> None:
        """Take each `{env: NAME}` of a config for the text that it will be."""
        root = self._document.node(self._base)
        assert root is not None
        for path, node in _walk(root, self._base):
            if variable_of(node.value) is not None:
                self._variables.add(path)

    def skip_misplaced_variables(self) -> None:
        """Report `{env: X}` where none is taken, and pass over it."""
        assert self._document.root is not None
        written = self._document.written
        if "env" not in written and "\\" not in written:
            return
        for path, node in _walk(self._document.root, ()):
            name = variable_of(node.value) if node.kind == "map" else None
            if name is not None:
                self._variable(path, node, name)

    def _variable(self, path: Path, node: Node, name: str) -> None:
        in_config = len(path) > 3 and path[0] == "tools" and path[2] == "config"
        if (in_config and _VARIABLE.fullmatch(name)) or _is_key_of_a_model(path):
            return
        self._skipped.append(path)
        self._bad_paths.add(path)
        if in_config:
            message = f"{shown(name)} is no name of a variable of the environment"
            meant = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_")
            help_ = f"write {{env: {meant if _VARIABLE.fullmatch(meant) else 'MY_API_KEY'}}}"
            self._complaints.report("bad-name", message, node.entries["env"].node.span, help_)
        else:
            self._complaints.report(
                "needless-key",
                f"{place_name(path)} takes no value from the environment",
                node.span,
                "only the config of a tool and model.api_key take {env: NAME}",
            )

    def _unknown_keys_first(self, error: Any) -> None:
        for inner in error.context or ():
            self._unknown_keys_first(inner)
        if error.validator != "additionalProperties" or self._passed_over(error):
            return
        path = self._path(error)
        parent = self._document.node(path)
        if parent is None or parent.kind != "map" or not self._right_branch(error):
            return
        known = error.schema.get("properties", {})
        patterns = error.schema.get("patternProperties", {})
        explained = {
            key: unknown_key(self._schema, self._subject, path[len(self._base) :], key, known)
            for key in parent.entries
            if key not in known and not any(re.search(pattern, key) for pattern in patterns)
        }
        renames = [unknown.rename for unknown in explained.values()]
        for key, unknown in explained.items():
            if unknown.stands_for is not None:
                self._complaints.explained.add((path, unknown.stands_for))
            # Two keys that mean one, or one that is there already, are for a person to sort out.
            is_free = unknown.rename not in parent.entries and renames.count(unknown.rename) == 1
            fix = unknown.rename if is_free else None
            self._complaints.report(
                unknown.id, unknown.message, parent.entries[key].key, unknown.help, fix
            )

    def _translate(self, error: Any) -> None:
        path = self._path(error)
        if self._passed_over(error) or error.validator == "additionalProperties":
            return
        if path in self._variables:
            self._complaints.not_text(error, path)
            return
        node = self._document.node(path)
        if node is None or node.broken:
            self._bad_paths.add(path)
            return
        if node.kind == "map" and isinstance(error.instance, str):
            # `propertyNames` reports its inner keyword, with the name as the instance.
            self._complaints.property_name(error, path, node)
            return
        if error.validator == "anyOf":
            self._any_of(error, path, node)
            return
        if error.validator not in ("required", "dependentRequired"):
            self._bad_paths.add(path)
        if error.validator != "type" and path in self._wrong_types:
            return
        if error.validator == "type":
            self._complaints.wrong_type(
                expected(error.schema, self._schema), path, node, error.schema
            )
            return
        self._complaints.keyword(error, path, node)

    def _any_of(self, error: Any, path: Path, node: Node) -> None:
        """Report what the branch of the found kind says; only without one, the choice itself."""
        branches: dict[int, list[Any]] = {}
        for inner in error.context:
            branches.setdefault(inner.relative_schema_path[0], []).append(inner)
        for inners in branches.values():
            if not any(e.validator == "type" and not list(e.relative_path) for e in inners):
                for inner in inners:
                    self._translate(inner)
                return
        self._bad_paths.add(path)
        self._complaints.wrong_type(expected(error.schema, self._schema), path, node, error.schema)

    def _path(self, error: Any) -> Path:
        return (*self._base, *error.absolute_path)

    def _passed_over(self, error: Any) -> bool:
        path = self._path(error)
        return any(path[: len(skipped)] == skipped for skipped in self._skipped)

    def _right_branch(self, error: Any) -> bool:
        """Whether the map was meant for this branch of a choice: no sibling says it is no map."""
        parent = error.parent
        if parent is None or parent.validator != "anyOf":
            return True
        branch = error.relative_schema_path[0]
        return not any(
            other.validator == "type"
            and other.relative_schema_path[0] == branch
            and not list(other.relative_path)
            for other in parent.context
        )


def _is_key_of_a_model(path: Path) -> bool:
    return path == ("model", "api_key") or (
        path[:2] == ("model", "fallback") and path[3:] == ("api_key",)
    )


def _without_notes(node: Node) -> JsonValue:
    """The value without keys that start with `x-`, which no schema of ours says anything of."""
    if node.kind == "map":
        return {
            name: _without_notes(entry.node)
            for name, entry in node.entries.items()
            if not name.startswith("x-")
        }
    return [_without_notes(item) for item in node.items] if node.kind == "list" else node.value


def _type_errors(errors: Iterable[Any]) -> Iterator[Any]:
    """The errors about a value's type, but not those that only rule out a branch of a choice."""
    for error in errors:
        if error.validator == "type" and (error.parent is None or error.relative_path):
            yield error
        yield from _type_errors(error.context or ())


def _walk(node: Node, path: Path) -> Iterator[tuple[Path, Node]]:
    """Every list and map of the file with its path, but nothing under an `x-` key."""
    if node.broken:
        return
    for name, entry in node.entries.items():
        if name.startswith("x-") or entry.node.broken:
            continue
        yield (*path, name), entry.node
        yield from _walk(entry.node, (*path, name))
    for i, item in enumerate(node.items):
        yield (*path, i), item
        yield from _walk(item, (*path, i))
