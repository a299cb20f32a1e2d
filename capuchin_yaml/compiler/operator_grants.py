"""Adds grants to the operator's config, and leaves every other line of it as it is."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Sequence
from pathlib import Path

from capuchin_yaml.compiler.document import read_document
from capuchin_yaml.compiler.operator_config import OperatorConfig, read_operator_config
from capuchin_yaml.errors import UnsafeState
from capuchin_yaml.policy.needs import Grant


def add_grants(config: OperatorConfig, grants: Sequence[Grant]) -> None:
    """Write grants into the file that `config` was read from, made where it is missing.

    Raises:
        UnsafeState: the file is not ours alone, has mistakes, or cannot be written; nothing
            was changed.
    """
    if config.floor.problem:
        raise UnsafeState(f"{config.path} cannot be used as it is: {config.floor.problem}")
    text = _with_grants(config, grants)
    _replace(config.path, text)
    written = read_operator_config(config.path)
    if written.floor.problem or not set(grants) <= set(written.grants):
        _replace(config.path, config.source)
        raise UnsafeState(
            f"{config.path} holds `trust` in a form that cannot be added to; "
            f"add by hand: {_lines(grants, '')}"
        )


def _with_grants(config: OperatorConfig, grants: Sequence[Grant]) -> str:
    text = config.source
    document = read_document(str(config.path), text.encode())
    block = document.node(("trust",))
    if block is None:
        if text and not text.endswith("\n"):
            text += "\n"
        return f"{text}trust:\n{_lines(grants, '  ')}"
    lines = text.splitlines(keepends=True)
    if not block.items or block.items[0].span.line == document.key_span(("trust",)).line:
        at = document.key_span(("trust",)).line - 1
        known = config.grants
        lines[at : block.span.end_line] = ["trust:\n", _lines([*known, *grants], "  ")]
        return "".join(lines)
    first = lines[block.items[0].span.line - 1]
    indent = first[: len(first) - len(first.lstrip())]
    lines.insert(block.items[0].span.line - 1, _lines(grants, indent))
    return "".join(lines)


def _lines(grants: Sequence[Grant], indent: str) -> str:
    return "".join(
        f"{indent}- {{agent: {json.dumps(grant.agent)}, hash: {json.dumps(grant.hash)}, "
        f"needs: {json.dumps(list(grant.needs))}}}\n"
        for grant in grants
    )


def _replace(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Why: the file is only used if nobody else can write it.
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(fd)
        os.replace(temporary, path.resolve())
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise UnsafeState(f"{path} cannot be written: {error.strerror}") from None
