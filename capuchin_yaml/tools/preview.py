"""What a tool shows of a call before a person is asked about it."""

from __future__ import annotations

import hashlib

from capuchin_yaml.tools.results import result_text


def preview_hash(value: object) -> str:
    """Hex SHA-256 of what a preview returned; a tool compares it with `ctx.preview_hash`.

    Raises:
        ToolFailed: the value has no text form.
    """
    return hashlib.sha256(result_text(value).encode()).hexdigest()
