"""What looks like a secret, so that it is warned of and never said again."""

from __future__ import annotations

import re
from collections.abc import Iterator

_SECRET = re.compile(
    r"""\b(?:sk-(?:ant-|proj-)?[A-Za-z0-9_-]{16,}     # keys of model providers
      |gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}
      |xox[abprs]-[\w-]{10,}
      |A(?:KIA|SIA)[A-Z0-9]{16}|AIza[\w-]{30,})
    |-----BEGIN\ [A-Z ]*PRIVATE\ KEY-----[^"'\n]*
    |\b[a-z][a-z0-9+.-]*://[^\s/:@]+:(?P<password>(?![<$*{])[^\s/@]{3,})@""",
    re.VERBOSE,
)
SECRET_MESSAGE = "this looks like a secret, and whoever reads the file has it"
SECRET_HELP = (
    "in the config of a tool, or as model.api_key, write {env: NAME}; then make the secret anew"
)
MASK = "***"
"""Written in the place of a secret."""
_MAYBE_SECRET = re.compile(
    r"sk-|gh[pousr]_|github_pat|glpat-|xox[abprs]-|AKIA|ASIA|AIza|PRIVATE|://|\\"
)


def may_hold_secrets(written: str) -> bool:
    """Whether it is worth to look at each text of a file; quick, and often wrong."""
    return _MAYBE_SECRET.search(written) is not None


def looks_secret(text: str) -> bool:
    """Whether a text has the form of a key, a password in an address, or a private key."""
    return _SECRET.search(text) is not None


def secret_ranges(text: str) -> Iterator[tuple[int, int]]:
    """Where in a text something stands that looks like a secret."""
    for match in _SECRET.finditer(text) if may_hold_secrets(text) else ():
        yield match.span("password" if match["password"] else 0)


def without_secrets(text: str) -> str:
    """The text with a mask in the place of whatever looks like a secret."""
    for start, end in reversed(list(secret_ranges(text))):
        text = text[:start] + MASK + text[end:]
    return text
