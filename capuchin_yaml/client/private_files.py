"""Files that only this user reads or writes."""

from __future__ import annotations

import os
import secrets
import shlex
import stat
from pathlib import Path

from capuchin_yaml.errors import UnsafeState
from capuchin_yaml.terminal_text import visible

OTHERS_WRITE = 0o022
OTHERS_ANY = 0o077
_READ_BYTES = 1024 * 1024


def read_own(file: Path) -> bytes | None:
    """Return the content of a file of this user, None where it is missing.

    Raises:
        UnsafeState: it is not a plain file, or somebody else owns it or can write it.
        OSError: it is a link, or cannot be read.
    """
    # Why: O_NONBLOCK, so that a pipe put in the file's place cannot hold us.
    try:
        fd = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    with os.fdopen(fd, "rb") as stream:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
            raise UnsafeState(f"{shown(file)} is not a plain file of this user; remove it")
        if found.st_mode & OTHERS_WRITE:
            raise UnsafeState(
                f"{shown(file)} can be written by other users, so it is not read; remove it:"
                f" rm {quoted(file)}"
            )
        return stream.read(_READ_BYTES)


def write_beside(file: Path, content: str) -> Path:
    """Write a new file beside `file`, on the disk when this returns, for moving over it."""
    temporary = file.with_name(f".{file.name}.{os.getpid()}.{secrets.token_hex(4)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(temporary, flags, 0o600)
    try:
        with os.fdopen(fd, "w", encoding="utf-8") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(fd)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def shown(path: object) -> str:
    """Write a path for a message."""
    return visible(str(path), keep_newlines=False)


def quoted(path: object) -> str:
    """Write a path for a command that a person can paste."""
    return visible(shlex.quote(str(path)), keep_newlines=False)
