"""The state folder of a project: where it is, whether it is ours alone, and the key in it.

Layout, all of it 0700 folders and 0600 files:

    home.json     which machine and which path it was made for, and the project's name
    key           seals every payload of the project's conversations
    temporal.db   our own server's database (SQLite, with -wal and -shm beside it)
    server.json  worker.json  agents.json
    store/  data/  log/
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from capuchin_yaml.client.key import (
    make_own_key,
    named_key_file,
    read_named_key,
    read_own_key,
)
from capuchin_yaml.client.machine import machine_mark
from capuchin_yaml.client.private_files import (
    OTHERS_ANY,
    OTHERS_WRITE,
    quoted,
    read_own,
    shown,
    write_beside,
)
from capuchin_yaml.errors import RequestRefused, UnsafeState
from capuchin_yaml.terminal_text import visible

FOLDER = ".capuchin"
_MARK = "home.json"
_SLUG = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Home:
    """The state folder of one project; nothing in it is believed before `open` has checked it."""

    path: Path
    """Absolute, with the links of its parents resolved."""
    project_dir: Path
    """The folder that holds the agents, or their `agents/` folder."""

    @classmethod
    def find(cls, agents_dir: Path | None = None) -> Self:
        """Locate the state folder for agents in `agents_dir`, or for the current folder.

        It is CAPUCHIN_HOME, else `.capuchin/` beside the agents; agents in a folder named
        `agents` have it beside that folder, so that every verb finds it from the project.
        Touches nothing.
        """
        start = Path(os.path.realpath(agents_dir if agents_dir is not None else Path.cwd()))
        if start.is_file():
            start = start.parent
        project_dir = start.parent if start.name == "agents" else start
        named = os.environ.get("CAPUCHIN_HOME")
        path = Path(named).expanduser() if named else project_dir / FOLDER
        # Why: the folder's own name is not resolved, so that a link in its place is seen.
        return cls(Path(os.path.realpath(path.absolute().parent)) / path.name, project_dir)

    @property
    def exists(self) -> bool:
        """Whether anything has this path."""
        return os.path.lexists(self.path)

    @property
    def database(self) -> Path:
        """The SQLite file of our own server."""
        return self.path / "temporal.db"

    @property
    def server_file(self) -> Path:
        """What our own server is and where it listens."""
        return self.path / "server.json"

    @property
    def worker_file(self) -> Path:
        """Which workers `up` has started."""
        return self.path / "worker.json"

    @property
    def agents_file(self) -> Path:
        """Which agents `up` serves."""
        return self.path / "agents.json"

    @property
    def store_dir(self) -> Path:
        """Payloads that are too large for history."""
        return self.path / "store"

    @property
    def data_dir(self) -> Path:
        """What tools keep."""
        return self.path / "data"

    @property
    def log_dir(self) -> Path:
        """Logs of server and workers."""
        return self.path / "log"

    def open(self, *, create: bool = False) -> Self:
        """Check that the folder is ours alone; with `create`, make it where it is missing.

        A missing folder without `create` is no error: what needs it says so.

        Raises:
            UnsafeState: it is a link, belongs to or can be written by somebody else, was made
                on another machine or for another path, or cannot be made here.
        """
        with self._explained("use"):
            if create:
                with contextlib.suppress(FileExistsError):
                    self.path.parent.mkdir(parents=True, exist_ok=True)
                    self.path.mkdir(mode=0o700)
            elif not self.exists:
                return self
            self._check_owner()
            if create and self._is_blank():
                self._mark()
            self._check_mark()
            self._check_entries()
            if stat.S_IMODE(self.path.stat().st_mode) & OTHERS_ANY:
                self.path.chmod(0o700)
        if create:
            with self._explained("write"):
                for folder in (self.store_dir, self.data_dir, self.log_dir):
                    folder.mkdir(mode=0o700, exist_ok=True)
        return self

    def read(self, file: Path) -> bytes | None:
        """Return the content of one of our own files, None where it is missing.

        Raises:
            UnsafeState: it is a link, no plain file, or not ours alone.
        """
        with self._explained("read"):
            return read_own(file)

    def write(self, file: Path, content: str) -> None:
        """Replace one of our own files as a whole, readable by this user only.

        Raises:
            UnsafeState: the folder cannot be written.
        """
        with self._explained("write"):
            temporary = write_beside(file, content)
            os.replace(temporary, file)

    def key(self) -> bytes:
        """Return the project's 32-byte key from CAPUCHIN_KEY_FILE, else from this folder.

        Raises:
            UnsafeState: the file can be read by others, or holds no key.
            ServerUnavailable: there is no key yet, so nothing has been started here.
        """
        named = named_key_file()
        if named is not None:
            return read_named_key(named)
        with self._explained("read"):
            return read_own_key(self.path / "key")

    def make_key(self) -> bytes:
        """Return the project's key, making it once; only `up` calls this.

        A file named in CAPUCHIN_KEY_FILE is the operator's and is never made.

        Raises:
            UnsafeState: as `key`; or the key is gone while conversations sealed with it exist.
        """
        file = self.path / "key"
        if named_key_file() is None and not os.path.lexists(file):
            if self.database.exists():
                raise UnsafeState(
                    f"the key {shown(file)} is gone, but {shown(self.database)} holds"
                    " conversations sealed with it; put the key back, or start afresh and lose"
                    f" them: rm -r {quoted(self.path)}"
                )
            with self._explained("write"):
                make_own_key(file)
        return self.key()

    def claim(self) -> None:
        """Mark the folder as made here, for a person who moved it here and says so.

        Raises:
            UnsafeState: it is a link, or belongs to or can be written by somebody else.
        """
        with self._explained("use"):
            self._check_owner()
            self._check_entries()
        self._mark()

    def _check_owner(self) -> None:
        found = self.path.lstat()
        if stat.S_ISLNK(found.st_mode):
            raise UnsafeState(
                f"{shown(self.path)} is a link, so it is not used; remove it:"
                f" rm {quoted(self.path)}"
            )
        if not stat.S_ISDIR(found.st_mode):
            raise UnsafeState(
                f"{shown(self.path)} is not a folder; remove it, or name another state folder"
                " in CAPUCHIN_HOME"
            )
        if found.st_uid != os.geteuid():
            raise UnsafeState(
                f"{shown(self.path)} belongs to another user (uid {found.st_uid}), so it is not"
                " used; name your own state folder in CAPUCHIN_HOME"
            )
        if found.st_mode & OTHERS_WRITE:
            raise UnsafeState(
                f"{shown(self.path)} can be written by other users, so it is not used;"
                f" {self._way_out()}"
            )

    def _is_blank(self) -> bool:
        # Why: a folder that a person made, or that an `up` was killed in the middle of making,
        # holds nothing that could be believed.
        return all(
            name == ".gitignore" or name.startswith((f".{_MARK}.", "..gitignore."))
            for name in os.listdir(self.path)
        )

    def _mark(self) -> None:
        self.write(self.path / ".gitignore", "*\n")
        mark = {
            "v": 1,
            "path": str(self.path),
            "machine": machine_mark(self.path),
            "project": _slug(self.project_dir.name),
        }
        self.write(self.path / _MARK, json.dumps(mark, indent=2) + "\n")

    def _check_mark(self) -> None:
        mark = self._read_mark()
        if mark is None:
            reason = f"it was not made by capuchin on this machine (no {_MARK} that can be read)"
        elif mark.get("path") != str(self.path):
            reason = (
                f"it was made for {shown(mark.get('path'))} and copied or moved here (if you moved"
                " it yourself, move it back)"
            )
        elif mark.get("machine") != machine_mark(self.path):
            reason = "it was made on another machine"
        else:
            return
        raise UnsafeState(
            f"{shown(self.path)} is not used: {reason}, and who made it could read and decide"
            f" your conversations; {self._way_out()}"
        )

    def _way_out(self) -> str:
        # Why: a folder that CAPUCHIN_HOME names may be anything, so nobody is told to remove it.
        if self.path != self.project_dir / FOLDER:
            return "name a new or empty folder of your own in CAPUCHIN_HOME"
        return f"if it came with files from somebody else, remove it: rm -r {quoted(self.path)}"

    def _read_mark(self) -> dict[str, object] | None:
        text = read_own(self.path / _MARK)
        if text is None:
            return None
        try:
            mark = json.loads(text)
        except ValueError:
            return None
        return mark if isinstance(mark, dict) else None

    def _check_entries(self) -> None:
        for name in os.listdir(self.path):
            entry = self.path / name
            try:
                found = entry.lstat()
            except FileNotFoundError:  # a file that somebody was just replacing
                continue
            if stat.S_ISLNK(found.st_mode):
                raise UnsafeState(
                    f"{shown(entry)} is a link, so the state folder is not used; remove it:"
                    f" rm {quoted(entry)}"
                )
            if found.st_uid != os.geteuid():
                raise UnsafeState(
                    f"{shown(entry)} belongs to another user, so the state folder is not used;"
                    f" remove it: rm -r {quoted(entry)}"
                )

    @contextlib.contextmanager
    def _explained(self, verb: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise UnsafeState(
                f"cannot {verb} the state folder {shown(self.path)}"
                f" ({error.strerror or error}); make it usable, or name another folder in"
                " CAPUCHIN_HOME"
            ) from error


def project_name(home: Home) -> str:
    """Return CAPUCHIN_PROJECT, else the name the state was made with, else the folder's.

    Raises:
        RequestRefused: CAPUCHIN_PROJECT is no slug.
    """
    named = os.environ.get("CAPUCHIN_PROJECT")
    if named is not None:
        if not _SLUG.fullmatch(named):
            raise RequestRefused(
                f"CAPUCHIN_PROJECT is {visible(named)!r}; a project is 1 to 40 of a-z, 0-9 and -,"
                f" such as {_slug(named)!r}"
            )
        return named
    if home.exists:
        with contextlib.suppress(OSError, UnsafeState):
            recorded = (home._read_mark() or {}).get("project")
            if isinstance(recorded, str) and _SLUG.fullmatch(recorded):
                return recorded
    return _slug(home.project_dir.name)


def _slug(name: str) -> str:
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:40].strip("-") or "project"
