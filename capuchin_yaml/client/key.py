"""The project's key: who has it may start and decide conversations."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from pathlib import Path

from capuchin_yaml.client.private_files import OTHERS_ANY, quoted, read_own, shown, write_beside
from capuchin_yaml.errors import ServerUnavailable, UnsafeState

KEY_BYTES = 32
_FILE_BYTES = 4096


def named_key_file() -> Path | None:
    """Return what CAPUCHIN_KEY_FILE names, None when it names nothing."""
    named = os.environ.get("CAPUCHIN_KEY_FILE")
    return Path(named).expanduser() if named else None


def read_named_key(file: Path) -> bytes:
    """Return the key in a file that the operator named.

    Raises:
        UnsafeState: it is missing, open to other users, or holds no key.
    """
    # Why: links are followed; the operator named the file, and clusters mount secrets as
    # links, owned by root and readable by the group of the process.
    try:
        fd = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise UnsafeState(
            f"CAPUCHIN_KEY_FILE names {shown(file)}, which cannot be read ({error.strerror});"
            f" make a key with: (umask 077; openssl rand -hex {KEY_BYTES} > {quoted(file)})"
        ) from error
    with os.fdopen(fd, "rb") as stream:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise UnsafeState(f"CAPUCHIN_KEY_FILE names {shown(file)}, which is not a plain file")
        if found.st_uid not in (os.geteuid(), 0):
            raise UnsafeState(
                f"CAPUCHIN_KEY_FILE names {shown(file)}, which belongs to another user"
                f" (uid {found.st_uid})"
            )
        is_mounted = found.st_uid == 0 and os.geteuid() != 0
        _check_mode(file, found, 0o037 if is_mounted else OTHERS_ANY)
        return _parse(file, stream.read(_FILE_BYTES))


def read_own_key(file: Path) -> bytes:
    """Return the key of a state folder.

    Raises:
        UnsafeState: it is open to other users, or holds no key.
        ServerUnavailable: there is none yet, so nothing has been started here.
    """
    text = read_own(file)
    if text is None:
        raise ServerUnavailable(
            f"this project has no key yet ({shown(file)} is missing): `capuchin up` makes it;"
            " for a cluster, name a key file in CAPUCHIN_KEY_FILE"
        )
    _check_mode(file, file.lstat(), OTHERS_ANY)
    return _parse(file, text)


def make_own_key(file: Path) -> None:
    """Make the key of a state folder, unless somebody else just did."""
    temporary = write_beside(file, secrets.token_hex(KEY_BYTES) + "\n")
    # Why a link: it fails where the name exists, so two `up` at once agree on one key, and
    # nobody ever reads half of one.
    try:
        with contextlib.suppress(FileExistsError):
            os.link(temporary, file)
    finally:
        temporary.unlink()


def _check_mode(file: Path, found: os.stat_result, forbidden: int) -> None:
    if stat.S_IMODE(found.st_mode) & forbidden:
        raise UnsafeState(
            f"the key {shown(file)} is open to other users, who could decide in your name;"
            f" chmod 600 {quoted(file)}, and make a new key if somebody may have read it"
        )


def _parse(file: Path, content: bytes) -> bytes:
    try:
        key = bytes.fromhex(content.decode("ascii").strip())
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise UnsafeState(
            f"{shown(file)} holds no key; a key is {KEY_BYTES} bytes written as"
            f" {2 * KEY_BYTES} hexadecimal digits"
        )
    return key
