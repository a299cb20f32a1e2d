"""Who asks and from where, as the client asserts it."""

from __future__ import annotations

import os
import pwd
import socket

from capuchin_yaml.errors import RequestRefused

_NAME_CHARACTERS = 128


def asserted_user() -> str:
    """Name CAPUCHIN_USER, else the operating system's user of this process.

    It is a claim: anybody with the project's key can set it, so it is recorded as asserted.

    Raises:
        RequestRefused: CAPUCHIN_USER is blank, too long or holds invisible characters.
    """
    claimed = os.environ.get("CAPUCHIN_USER")
    if claimed is None:
        return _system_user()
    name = claimed.strip()
    if not is_name(name):
        raise RequestRefused(
            f"CAPUCHIN_USER is {claimed[:40]!r}; it must be a printable name of 1 to"
            f" {_NAME_CHARACTERS} characters, or unset for the user {_system_user()!r}"
        )
    return name


def is_name(name: str) -> bool:
    """Whether a person can be recorded under this name."""
    return 0 < len(name.strip()) <= len(name) <= _NAME_CHARACTERS and name.isprintable()


def client_name(program: str) -> str:
    """Name a program and its machine, such as `cli@host`."""
    return f"{program}@{socket.gethostname() or 'localhost'}"


def _system_user() -> str:
    # Why: getpass.getuser() believes LOGNAME and USER before it asks the system.
    uid = os.geteuid()
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid-{uid}"
