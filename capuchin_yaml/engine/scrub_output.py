"""What programs and C libraries of a worker write past Python reaches its log without secrets."""

from __future__ import annotations

import codecs
import contextlib
import os
import tempfile
import threading
from pathlib import Path

from capuchin_yaml.engine.scrub import Scrubber

LOOKS_EVERY_S = 0.2
_CHUNK_BYTES = 1 << 20
_MOST_SPOOLED_BYTES = 64 << 20
"""A spool that was read this far is emptied; what is written in that very moment may be lost."""


class ScrubbedLog:
    """Takes the place of this process's stdout and stderr; a thread carries it to a log.

    Why a file between them and no pipe: who writes to a pipe waits for its reader, and a C library
    that holds Python's lock would wait for ever. The file has no name, so it ends with the process.
    """

    def __init__(self, log: int, folder: Path) -> None:
        """`log` is the log's descriptor, which belongs to this object from now on.

        Raises:
            OSError: no file can be made in `folder`.
        """
        self._log = log
        self._spool, name = tempfile.mkstemp(prefix=".output.", dir=folder)
        try:
            # Why opened twice: whoever writes only ever appends, wherever the reader is.
            end = os.open(name, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        finally:
            os.unlink(name)
        os.dup2(end, 1)
        os.dup2(end, 2)
        os.close(end)
        self._lock = threading.Lock()
        self._read = 0
        self._decode = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._scrubbed = Scrubber().stream()

    def scrub_with(self, scrubber: Scrubber) -> None:
        """Carry over what is written from now on, and whatever was before, without its secrets."""
        self._scrubbed = scrubber.stream()
        threading.Thread(target=self._run, name="output", daemon=True).start()

    def drain(self) -> None:
        """Carry over all that was written so far; the process is about to end."""
        with self._lock, contextlib.suppress(OSError, ValueError):
            while self._carry():
                pass
            self._write(self._scrubbed.end())

    def _run(self) -> None:
        waits = threading.Event()
        while True:
            more = False
            with self._lock, contextlib.suppress(OSError, ValueError):
                more = self._carry()
            if not more:
                waits.wait(LOOKS_EVERY_S)

    def _carry(self) -> bool:
        """Carry over one chunk; whether there was any."""
        data = os.pread(self._spool, _CHUNK_BYTES, self._read)
        if not data:
            if self._read > _MOST_SPOOLED_BYTES:
                os.ftruncate(self._spool, 0)
                self._read = 0
            return False
        self._read += len(data)
        self._write(self._scrubbed.feed(self._decode.decode(data)))
        return True

    def _write(self, text: str) -> None:
        data = text.encode("utf-8", "surrogateescape")
        while data:
            data = data[os.write(self._log, data) :]
