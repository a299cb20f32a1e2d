"""Diagnostics as text: for people (full, concise) and for programs (json, sarif, github).

What a file holds is printed only in a visible form; colour comes only when the caller asks.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Literal, TypeAlias, assert_never
from urllib.parse import quote

from capuchin_yaml import __version__
from capuchin_yaml.compiler.excerpt import NO_SECRETS, Secrets, excerpt
from capuchin_yaml.compiler.secret_text import looks_secret, without_secrets
from capuchin_yaml.diagnostics import Diagnostic, Edit, Severity, Span
from capuchin_yaml.spec import JsonValue
from capuchin_yaml.terminal_text import visible

Edits: TypeAlias = Mapping[Diagnostic, Sequence[Edit]]
"""What repairs a diagnostic for certain, for those that have a repair."""

Format: TypeAlias = Literal["full", "concise", "json", "sarif", "github"]
FORMATS: tuple[Format, ...] = ("full", "concise", "json", "sarif", "github")

_COLOURS = {Severity.ERROR: "31", Severity.WARNING: "33", Severity.NOTE: "36"}


def report(
    diagnostics: Sequence[Diagnostic],
    sources: Mapping[str, str],
    format_: Format,
    *,
    files: Sequence[str] = (),
    edits: Edits | None = None,
    colour: bool = False,
) -> str:
    """All diagnostics in one format, ending in a line break unless there is nothing to say.

    `sources` holds the text of each file by path, for excerpts; `files` is every file that was
    looked at, for the formats that list them; `edits` are for the formats of programs, which get
    none that would repeat what looks like a secret.
    """
    edits = {
        diagnostic: some
        for diagnostic, some in (edits or {}).items()
        if not any(looks_secret(edit.text) for edit in some)
    }
    match format_:
        case "full":
            secrets: dict[tuple[str, int], list[Span]] = {}
            for d in diagnostics:
                if d.id == "secret-literal":
                    secrets.setdefault((d.span.path, d.span.line), []).append(d.span)
            blocks = [
                full(d, sources.get(d.span.path, ""), colour=colour, secrets=secrets)
                for d in diagnostics
            ]
            return "\n".join(blocks)
        case "concise":
            return "".join(f"{concise(d)}\n" for d in diagnostics)
        case "github":
            return "".join(f"{github(d)}\n" for d in diagnostics)
        case "json":
            return _dump(as_json(diagnostics, files, edits))
        case "sarif":
            return _dump(as_sarif(diagnostics, edits))
        case _:
            assert_never(format_)


def concise(diagnostic: Diagnostic) -> str:
    """`path:line:col: error[id]: headline`, on one line."""
    span = diagnostic.span
    return _line(
        f"{span.path}:{span.line}:{span.column}: "
        f"{diagnostic.severity}[{diagnostic.id}]: {diagnostic.message}"
    )


def full(
    diagnostic: Diagnostic, source: str, *, colour: bool = False, secrets: Secrets = NO_SECRETS
) -> str:
    """Headline, place, excerpt with a caret, and help; ends in a line break."""
    code = _COLOURS[diagnostic.severity]

    def paint(text: str) -> str:
        return f"\x1b[1;{code}m{text}\x1b[0m" if colour else text

    span = diagnostic.span
    lines = [
        f"{paint(f'{diagnostic.severity}[{diagnostic.id}]')}: {_line(diagnostic.message)}",
        f"  --> {_line(span.path)}:{span.line}:{span.column}",
    ]
    gutter = 1
    if source:
        shown = excerpt(diagnostic, source, paint, secrets)
        gutter = shown[0].index("|") - 1
        lines.extend(shown)
    lines.extend(
        f"{'':>{gutter}} = note: {_line(a.message)}: {_line(a.span.path)}:{a.span.line}"
        for a in diagnostic.annotations
        if a.span.path != span.path
    )
    if diagnostic.help is not None:
        lines.append(f"{'':>{gutter}} = help: {_line(diagnostic.help)}")
    return "\n".join(lines) + "\n"


def github(diagnostic: Diagnostic) -> str:
    """A workflow command that GitHub shows at the line of a pull request."""
    span = diagnostic.span
    kind = "notice" if diagnostic.severity is Severity.NOTE else str(diagnostic.severity)
    properties = {
        "file": span.path,
        "line": str(span.line),
        "col": str(span.column),
        "endLine": str(span.end_line),
        "endColumn": str(span.end_column),
        "title": diagnostic.id,
    }
    written = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{kind} {written}::{_data(without_secrets(_with_help(diagnostic)))}"


def as_json(
    diagnostics: Sequence[Diagnostic], files: Sequence[str], edits: Edits
) -> dict[str, JsonValue]:
    """The object of `validate --format json`."""
    return {
        "v": 1,
        "files": list(files),
        "diagnostics": [
            {
                "id": d.id,
                "severity": str(d.severity),
                **_place(d.span),
                "message": _said(d.message),
                "help": _said(d.help) if d.help is not None else None,
                "annotations": [
                    {**_place(a.span), "message": _said(a.message)} for a in d.annotations
                ],
                "edits": [{**_place(e.span), "text": e.text} for e in edits.get(d, ())],
            }
            for d in diagnostics
        ],
    }


def as_sarif(diagnostics: Sequence[Diagnostic], edits: Edits) -> dict[str, JsonValue]:
    """A SARIF 2.1.0 log with one run."""
    ids = sorted({d.id for d in diagnostics})
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "capuchin-yaml",
                        "version": __version__,
                        "rules": [{"id": id_} for id_ in ids],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "results": [_sarif_result(d, ids, edits.get(d, ())) for d in diagnostics],
            }
        ],
    }


def _sarif_result(
    diagnostic: Diagnostic, ids: Sequence[str], edits: Sequence[Edit]
) -> dict[str, JsonValue]:
    result: dict[str, JsonValue] = {
        "ruleId": diagnostic.id,
        "ruleIndex": ids.index(diagnostic.id),
        "level": str(diagnostic.severity),
        "message": {"text": _said(_with_help(diagnostic))},
        "locations": [{"physicalLocation": _sarif_place(diagnostic.span)}],
    }
    if diagnostic.annotations:
        result["relatedLocations"] = [
            {
                "id": i,
                "message": {"text": _said(annotation.message)},
                "physicalLocation": _sarif_place(annotation.span),
            }
            for i, annotation in enumerate(diagnostic.annotations, start=1)
        ]
    if edits:
        # Why one change: nothing but the agent's own file is ever repaired.
        result["fixes"] = [
            {
                "description": {"text": _said(diagnostic.help or diagnostic.message)},
                "artifactChanges": [
                    {
                        "artifactLocation": _sarif_file(edits[0].span),
                        "replacements": [
                            {
                                "deletedRegion": _sarif_region(edit.span),
                                "insertedContent": {"text": edit.text},
                            }
                            for edit in edits
                        ],
                    }
                ],
            }
        ]
    return result


def _sarif_place(span: Span) -> dict[str, JsonValue]:
    return {"artifactLocation": _sarif_file(span), "region": _sarif_region(span)}


def _sarif_file(span: Span) -> dict[str, JsonValue]:
    path = PurePath(span.path)
    uri = path.as_uri() if path.is_absolute() else quote(path.as_posix(), errors="replace")
    return {"uri": uri}


def _sarif_region(span: Span) -> dict[str, JsonValue]:
    return {
        "startLine": span.line,
        "startColumn": span.column,
        "endLine": span.end_line,
        "endColumn": span.end_column,
    }


def _place(span: Span) -> dict[str, JsonValue]:
    return {
        "path": span.path,
        "line": span.line,
        "column": span.column,
        "end_line": span.end_line,
        "end_column": span.end_column,
    }


def _with_help(diagnostic: Diagnostic) -> str:
    if diagnostic.help is None:
        return diagnostic.message
    return f"{diagnostic.message}\nhelp: {diagnostic.help}"


def _line(text: str) -> str:
    return visible(without_secrets(text), keep_newlines=False)


def _said(text: str) -> str:
    return visible(without_secrets(text))


def _data(text: str) -> str:
    return visible(text.replace("%", "%25")).replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _dump(value: JsonValue) -> str:
    # Why: ASCII keeps hidden characters of paths exact for programs and harmless on a terminal.
    return json.dumps(value, indent=2, ensure_ascii=True) + "\n"
