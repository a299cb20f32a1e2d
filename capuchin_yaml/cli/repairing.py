"""`validate --fix`: agent files repaired on disk, or shown as a diff that changes nothing."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from capuchin_yaml.compiler.fix import Repaired


@dataclass(frozen=True, slots=True)
class FileRepair:
    """One agent file with what repairing it makes of it."""

    path: Path
    before: bytes
    repaired: Repaired

    def diff(self) -> str:
        """A unified diff without secrets, empty when there is nothing to repair."""
        from capuchin_yaml.compiler.secret_text import without_secrets

        old, new = (_lines(data) for data in (self.before, self.repaired.data))
        lines = unified_diff(old, new, str(self.path), str(self.path))
        whole = [line if line.endswith("\n") else f"{line}\n{_NO_END}\n" for line in lines]
        return "".join(map(without_secrets, whole))

    def write(self) -> None:
        """Put the repaired file in the place of the other, whole or not at all.

        Raises:
            click.ClickException: the file is not any more what was repaired, or cannot be written.
        """
        if not self.repaired.done:
            return
        try:
            replace_file(self.path, self.before, self.repaired.data)
        except OSError as error:
            reason = error.strerror or str(error)
            raise click.ClickException(f"cannot write {self.path}: {reason}") from error


_NO_END = "\\ No newline at end of file"


def _lines(data: bytes) -> list[str]:
    # A line separator of Unicode is no line break of a diff.
    text = data.decode("utf-8", "replace")
    return [f"{line}\n" for line in text.split("\n")[:-1]] + [text.rpartition("\n")[2]] * (
        not text.endswith("\n") and bool(text)
    )


def read_repairs(files: Sequence[Path]) -> list[FileRepair]:
    """What repairing each file that can be read would make of it; writes nothing."""
    from capuchin_yaml.compiler.fix import repaired
    from capuchin_yaml.compiler.load import read_bytes

    found: list[FileRepair] = []
    for path in files:
        # Why no word of it: what cannot be read is reported by the check itself.
        with contextlib.suppress(OSError, ValueError):
            data = read_bytes(path)
            found.append(FileRepair(path, data, repaired(data, path)))
    return found


def replace_file(path: Path, before: bytes, after: bytes) -> None:
    """Put `after` in the place of the file at `path` if that still holds `before`.

    A link stays a link: the file that it leads to is replaced. Mode bits are kept.

    Raises:
        click.ClickException: the file holds something else by now.
        OSError: it cannot be read or written.
    """
    target = Path(os.path.realpath(path))
    mode = target.stat().st_mode & 0o7777
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(after)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, mode)
        if target.read_bytes() != before:
            raise click.ClickException(
                f"{path} was changed while it was repaired; nothing was written, try again"
            )
        os.replace(name, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
