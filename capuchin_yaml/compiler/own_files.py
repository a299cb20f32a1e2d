"""Other files that an agent is made of: only files in its own folder, after resolving links."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path as FilePath

from capuchin_yaml.compiler.document import Path
from capuchin_yaml.compiler.nearest import nearest
from capuchin_yaml.compiler.reading import Reading
from capuchin_yaml.compiler.source_text import MAX_FILE_BYTES, SourceText, decode
from capuchin_yaml.compiler.wording import place_name, shown


@dataclass(frozen=True, slots=True)
class AgentFolder:
    """The folder that an agent's file lies in, as it is on disk now."""

    path: FilePath

    def holds(self, file: FilePath) -> bool:
        """Whether `file` lies in the folder, after resolving links.

        Raises:
            OSError: that cannot be found out.
        """
        return file.resolve().is_relative_to(self.path.resolve())

    def has(self, file: FilePath) -> bool:
        """Whether `file` is a plain file."""
        return file.is_file()

    def read(self, file: FilePath) -> bytes:
        """The bytes of `file`, at most one more than a file may have.

        Raises:
            OSError: it cannot be read.
        """
        with file.open("rb") as stream:
            return stream.read(MAX_FILE_BYTES + 1)


def folder_of(path: FilePath) -> FilePath:
    """The folder that an agent's file lies in; of a link, that of the file that it leads to."""
    try:
        return path.resolve().parent if path.is_symlink() else path.parent
    except (OSError, RuntimeError, ValueError):
        return path.parent  # a link that leads nowhere is told of where it is read


def own_file(
    reading: Reading, folder: AgentFolder | None, name: str, where: Path
) -> FilePath | None:
    """The file that `name` means, from the file in which it stands; None when that is reported."""
    if folder is None:
        reading.error("file-missing", f"{place_name(where)} names a file of no folder", where)
        return None
    file = folder_of(FilePath(reading.document.value_span(where).path)) / name
    try:
        inside = folder.holds(file)
        exists = inside and folder.has(file)
    except (OSError, ValueError):
        inside, exists = True, False
    if not inside:
        reading.error(
            "path-outside",
            f"{place_name(where)} names a file outside the agent's folder",
            where,
            "move the file beside the agent",
        )
        return None
    if not exists:
        message = f"{place_name(where)} names a file that is not there"
        reading.error("file-missing", message, where, _near(folder, file))
        return None
    return file


def _near(folder: AgentFolder, file: FilePath) -> str:
    """What to type instead of the name of a file that is not there."""
    try:
        meant = nearest(file.name, [p.name for p in file.parent.iterdir()])
    except (OSError, ValueError):
        meant = None
    # Why: a name from a folder that the agent has no part in would tell of what lies there.
    if meant is not None and folder.holds(file.parent):
        return f"did you mean {meant!r}?"
    return f"make the file {shown(file.name)}, or name one that is there"


def own_bytes(reading: Reading, folder: AgentFolder, file: FilePath, where: Path) -> bytes | None:
    """The bytes of such a file; None when it cannot be read, which is reported."""
    try:
        return folder.read(file)
    except OSError as error:
        help_ = "name another file"
        if isinstance(error, PermissionError):
            help_ = f"chmod u+r {shown(str(file))}"
        reading.error(
            "unreadable", f"{place_name(where)} cannot be read: {error.strerror}", where, help_
        )
        return None


def own_text(
    reading: Reading, folder: AgentFolder, file: FilePath, where: Path
) -> SourceText | None:
    """The UTF-8 text of such a file with plain line ends; None when that is reported."""
    data = own_bytes(reading, folder, file, where)
    if data is None:
        return None
    source, problems, _ = decode(str(file), data.replace(b"\r\n", b"\n"))
    reading.parts[file] = source.text
    reading.problems.extend(problems)
    return None if problems else source
