"""Typed reads of one checked file: a value comes out only where the schema accepted it."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path as FilePath

from capuchin_yaml.compiler.certain_values import certain_value
from capuchin_yaml.compiler.check import Checked
from capuchin_yaml.compiler.document import Document, Node, Path
from capuchin_yaml.compiler.repairs import amount_repair, duration_repair
from capuchin_yaml.compiler.wording import found, place_name
from capuchin_yaml.diagnostics import Annotation, Diagnostic, Edit, Severity, Span
from capuchin_yaml.money import parse_amount

_DURATION = re.compile(r"(?:([0-9]+)h)?(?:([0-9]+)m)?(?:([0-9]+)s)?")
_LONGEST_S = 8760 * 3600


class Reading:
    """One file while it becomes a spec; collects what the meaning of the values gets wrong."""

    def __init__(self, document: Document, checked: Checked) -> None:
        self.document = document
        self.checked = checked
        self.problems: list[Diagnostic] = []
        self.parts: dict[FilePath, str] = {}
        """Other files that were read, with their text."""

    def node(self, path: Path) -> Node | None:
        """The value at `path`, or None when it is absent or already reported."""
        node = self.document.node(path)
        if node is None or node.broken or not self.checked.usable(path):
            return None
        return node

    def text(self, path: Path) -> str | None:
        """The text at `path`."""
        node = self.node(path)
        return node.value if node is not None and isinstance(node.value, str) else None

    def whole(self, path: Path, default: int) -> int:
        """The whole number at `path`, else `default`."""
        node = self.node(path)
        if node is None or not isinstance(node.value, int | float):
            return default
        return int(node.value)

    def texts(self, path: Path) -> tuple[str, ...]:
        """The texts of the list at `path`."""
        node = self.node(path)
        if node is None:
            return ()
        return tuple(item.text for item in node.items if isinstance(item.value, str))

    def duration_s(self, path: Path) -> float | None:
        """The duration at `path` in seconds."""
        text = self.text(path)
        match = _DURATION.fullmatch(text) if text is not None else None
        if match is None:
            return None
        hours, minutes, seconds = (int(part or 0) for part in match.groups())
        total = hours * 3600 + minutes * 60 + seconds
        if not 0 < total <= _LONGEST_S:
            self.error(
                "bad-duration",
                f"{place_name(path)} must be from 1s to a year, found {text}",
                path,
                duration_repair(""),
            )
            return None
        return float(total)

    def amount(self, path: Path) -> str | None:
        """The amount at `path` as it is written, never through a float."""
        node = self.node(path)
        if node is None:
            return None
        try:
            amount = parse_amount(node.text)
        except ValueError:
            self.error(
                "bad-amount",
                f"{place_name(path)} must be a plain decimal with at most 12 digits on each "
                f"side of the point, found {found(node)}",
                path,
                amount_repair(node.text),
                fix=certain_value(path, node, {"title": "amount"}),
            )
            return None
        return amount

    def positive_amount(self, path: Path, otherwise: str = "price: {type: free}") -> str | None:
        """The amount at `path`, which must be more than nothing; `otherwise` is what to type."""
        amount = self.amount(path)
        if amount is not None and Decimal(amount) == 0:
            self.error(
                "bad-amount",
                f"{place_name(path)} is nothing",
                path,
                otherwise,
            )
            return None
        return amount

    def error(
        self,
        id_: str,
        message: str,
        where: Path | Span,
        help_: str | None = None,
        *annotations: Annotation,
        fix: str | None = None,
    ) -> None:
        """Report an error at a value or a range; `fix` is what certainly belongs there."""
        self._report(id_, Severity.ERROR, message, where, help_, annotations, fix)

    def warning(
        self,
        id_: str,
        message: str,
        where: Path | Span,
        help_: str | None = None,
        *annotations: Annotation,
    ) -> None:
        """Report a warning at a value or a range."""
        self._report(id_, Severity.WARNING, message, where, help_, annotations)

    def _report(
        self,
        id_: str,
        severity: Severity,
        message: str,
        where: Path | Span,
        help_: str | None,
        annotations: tuple[Annotation, ...],
        fix: str | None = None,
    ) -> None:
        span = where if isinstance(where, Span) else self.document.value_span(where)
        edit = Edit(span, fix) if fix is not None else None
        self.problems.append(Diagnostic(id_, severity, message, span, help_, annotations, edit))
