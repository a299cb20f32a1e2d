"""The operator's config of this machine: what no agent file may decide.

It is `$XDG_CONFIG_HOME/capuchin/config.yaml`, by default under `~/.config`, and counts only if
it belongs to this user and nobody else can write it. A file that cannot be used makes every
call ask, because nobody can say then what it would have forbidden.
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from capuchin_yaml.compiler.check import check_whole
from capuchin_yaml.compiler.document import read_document
from capuchin_yaml.compiler.nearest import nearest
from capuchin_yaml.compiler.operator_people import (
    Gate,
    Hook,
    read_gate,
    read_hooks,
    read_people,
)
from capuchin_yaml.compiler.reading import Reading
from capuchin_yaml.compiler.scalar_positions import ScalarPositions
from capuchin_yaml.compiler.wording import either
from capuchin_yaml.diagnostics import Diagnostic, Severity, Span, in_file_order
from capuchin_yaml.policy.judge import Floor
from capuchin_yaml.policy.needs import Grant
from capuchin_yaml.policy.people import People
from capuchin_yaml.schema_files import read_schema
from capuchin_yaml.spec import RuleAnswer, RuleSpec

MAX_BYTES = 256 * 1024
_OTHERS_WRITE = 0o022


@dataclass(frozen=True, slots=True)
class OperatorConfig:
    """What the operator says, as far as it can be read."""

    path: Path
    floor: Floor = field(default_factory=Floor)
    grants: tuple[Grant, ...] = ()
    people: People = field(default_factory=People)
    hooks: tuple[Hook, ...] = ()
    gate: Gate | None = None
    diagnostics: tuple[Diagnostic, ...] = ()
    source: str = ""
    exists: bool = True


def operator_config_path() -> Path:
    """Where the operator's config of this user lies."""
    base = os.environ.get("XDG_CONFIG_HOME", "")
    # Why: the specification says that a relative path there is to be ignored.
    folder = Path(base) if base.startswith("/") else Path.home() / ".config"
    return folder / "capuchin" / "config.yaml"


def read_operator_config(path: Path | None = None) -> OperatorConfig:
    """The operator's config; never raises, and one that is missing says nothing."""
    path = path or operator_config_path()
    try:
        data = _read(path)
    except (FileNotFoundError, NotADirectoryError):
        return OperatorConfig(path, exists=False)
    except (OSError, ValueError) as error:
        return _unusable(path, (error.strerror if isinstance(error, OSError) else "") or str(error))
    return _compiled(path, data)


class LiveOperatorConfig:
    """The operator's config as it is now; read again only when the file has changed."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._mark: tuple[object, ...] | None = None
        self._config: OperatorConfig | None = None

    def now(self) -> OperatorConfig:
        """What the file says at this moment."""
        path = self._path or operator_config_path()
        mark = _mark(path)
        with self._lock:
            if self._config is None or mark != self._mark:
                self._config = read_operator_config(path)
                self._mark = mark
            return self._config


def _mark(path: Path) -> tuple[object, ...]:
    try:
        found = os.stat(path)
    except OSError as error:
        return (str(path), error.errno)
    return (
        str(path),
        found.st_dev,
        found.st_ino,
        found.st_size,
        found.st_mtime_ns,
        found.st_ctime_ns,
    )


def _read(path: Path) -> bytes:
    # Why: O_NONBLOCK, so that a pipe put in the file's place cannot hold a verdict.
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise ValueError("it is no plain file")
        if found.st_uid != os.geteuid():
            raise ValueError("it belongs to another user")
        if found.st_mode & _OTHERS_WRITE:
            raise ValueError(f"other users can write it; type: chmod go-w {path}")
        data = b""
        while len(data) <= MAX_BYTES and (more := os.read(fd, MAX_BYTES + 1)):
            data += more
    finally:
        os.close(fd)
    if len(data) > MAX_BYTES:
        raise ValueError(f"it is over {MAX_BYTES // 1024} KB")
    return data


def _unusable(path: Path, problem: str) -> OperatorConfig:
    where = Span(str(path), 1, 1, 1, 1)
    message = f"the operator's config cannot be used: {problem}"
    return OperatorConfig(
        path,
        Floor(problem=problem),
        people=People(problem=problem),
        diagnostics=(Diagnostic("unreadable", Severity.ERROR, message, where, "capuchin doctor"),),
    )


def _compiled(path: Path, data: bytes) -> OperatorConfig:
    document = read_document(str(path), data)
    source = document.source.text
    if document.root is None and [d.id for d in document.diagnostics] == ["empty-file"]:
        return OperatorConfig(path, source=source)
    checked = check_whole(document, read_schema("operator.v1"), "the operator's config")
    reading = Reading(document, checked)
    rules = _floor(reading)
    people, hooks, gate = read_people(reading), tuple(read_hooks(reading)), read_gate(reading)
    found = in_file_order([*document.diagnostics, *checked.diagnostics, *reading.problems])
    errors = [d for d in found if d.severity is Severity.ERROR]
    problem = f"{errors[0].message} ({path}:{errors[0].span.line})" if errors else ""
    if errors:
        # Why: a grant, a group or a gate in a file with mistakes may be half of one.
        return OperatorConfig(
            path,
            Floor(rules, problem),
            people=People(problem=problem),
            diagnostics=found,
            source=source,
        )
    return OperatorConfig(
        path,
        Floor(rules, problem),
        tuple(_grants(reading)),
        people,
        hooks,
        gate,
        found,
        source,
    )


def _grants(reading: Reading) -> Iterator[Grant]:
    block = reading.document.node(("trust",))
    for i in range(len(block.items) if block is not None else 0):
        agent, hash_ = reading.text(("trust", i, "agent")), reading.text(("trust", i, "hash"))
        if agent is not None and hash_ is not None:
            yield Grant(agent, hash_, reading.texts(("trust", i, "needs")))


def _floor(reading: Reading) -> tuple[RuleSpec, ...]:
    """The rules that can be read; one that cannot leaves the others in force."""
    block = reading.document.node(("floor",))
    answers: dict[str, RuleAnswer] = {"ask": "ask", "deny": "deny"}
    rules = []
    for i in range(len(block.items) if block is not None else 0):
        path = ("floor", i)
        then = answers.get(reading.text((*path, "then")) or "")
        if then is None or not reading.checked.usable(path):
            continue
        when = reading.text((*path, "when"))
        if when is not None and not _is_sound(reading, (*path, "when"), when):
            continue
        rules.append(
            RuleSpec(
                then=then,
                tool=reading.text((*path, "tool")),
                when=when,
                reason=reading.text((*path, "reason")) or "",
            )
        )
    return tuple(rules)


def _is_sound(reading: Reading, path: tuple[str | int, ...], when: str) -> bool:
    """Whether a condition can be read; the arguments of every tool are not known here."""
    from capuchin_yaml.policy.cel_types import Scope
    from capuchin_yaml.policy.rule_check import check_condition

    node = reading.document.node(path)
    assert node is not None
    positions = ScalarPositions(reading.document.source, node)
    problems = check_condition(when, Scope(None, None, None)).problems
    for problem in problems:
        meant = nearest(problem.word, problem.known) if problem.word else None
        help_ = problem.help or (
            f"did you mean {meant!r}?"
            if meant is not None
            else f"write {either(problem.known[:8])}"
        )
        span = positions.span(problem.start, problem.end)
        reading.error(problem.id, problem.message, span, help_)
    return not problems
