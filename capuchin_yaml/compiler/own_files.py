"""Other files that an agent is made of: only files in its own folder, after resolving links."""

from __future__ import annotations

from pathlib import Path as FilePath

from capuchin_yaml.compiler.document import Path
from capuchin_yaml.compiler.reading import Reading
from capuchin_yaml.compiler.source_text import MAX_FILE_BYTES, SourceText, decode
from capuchin_yaml.compiler.wording import place_name


def own_file(reading: Reading, folder: FilePath | None, name: str, where: Path) -> FilePath | None:
    """The file that `name` means, from the agent's folder; None when that is reported."""
    if folder is None:
        reading.error("file-missing", f"{place_name(where)} names a file of no folder", where)
        return None
    try:
        file = (folder / name).resolve()
        inside = file.is_relative_to(folder.resolve())
        exists = inside and file.is_file()
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
        reading.error("file-missing", f"{place_name(where)} names a file that is not there", where)
        return None
    return folder / name


def own_text(reading: Reading, file: FilePath, where: Path) -> SourceText | None:
    """The UTF-8 text of such a file with plain line ends; None when that is reported."""
    try:
        with file.open("rb") as stream:
            data = stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        reading.error("unreadable", f"{place_name(where)} cannot be read: {error.strerror}", where)
        return None
    source, problems, _ = decode(str(file), data.replace(b"\r\n", b"\n"))
    reading.parts[file] = source.text
    reading.problems.extend(problems)
    return None if problems else source
