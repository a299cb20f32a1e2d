"""Keeps the secrets of a worker out of the logs and the output of its process."""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import Any, TextIO, cast

from capuchin_yaml.engine.scrub import Scrubber

_lock = threading.Lock()
_filters: list[ScrubFilter] = []
_plain_record: list[Callable[..., logging.LogRecord]] = [logging.LogRecord]
"""What makes records when nothing is to be scrubbed."""


class ScrubFilter(logging.Filter):
    """Scrubs the text, the values and the trace of each record; drops none."""

    def __init__(self, scrubber: Scrubber) -> None:
        super().__init__()
        self._scrubber = scrubber

    def filter(self, record: logging.LogRecord) -> bool:
        """Clean the record in place."""
        try:
            text = record.getMessage()
        except Exception:  # a wrong format is told by logging itself, with all its values
            text = f"{record.msg} {record.args}"
        clean = self._scrubber.scrub(text)
        if clean != text:
            record.msg, record.args = clean, None
        if record.exc_info and record.exc_info[0] is not None:
            trace = record.exc_text or "".join(traceback.format_exception(*record.exc_info))
            clean = self._scrubber.scrub(trace)
            if clean != trace:
                # Why: a handler that formats the exception itself would say it after all.
                record.exc_info, record.exc_text = None, clean.rstrip("\n")
        if record.stack_info:
            record.stack_info = self._scrubber.scrub(record.stack_info)
        for name, value in list(record.__dict__.items()):
            if name not in _OWN and isinstance(value, str | dict | list | tuple):
                record.__dict__[name] = self._scrubber.scrub_json(value)
        return True


_OWN = frozenset(logging.LogRecord("", 0, "", 0, "", (), None).__dict__) | {"message", "asctime"}


@contextlib.contextmanager
def scrubbed_logs(scrubber: Scrubber) -> Iterator[None]:
    """Scrub what any logger of this process says while the block runs.

    Records are cleaned when they are made, because the filters of a logger do not see what
    comes up from below it, and handlers may be added at any time. Handlers that exist now
    filter too: records may also be made elsewhere, such as those of the SDK's core.
    """
    added = ScrubFilter(scrubber)
    handlers = list(_all_handlers())
    with _lock:
        if not _filters:
            _plain_record[0] = logging.getLogRecordFactory()
            logging.setLogRecordFactory(_clean_record)
        _filters.append(added)
    for handler in handlers:
        handler.addFilter(added)
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(added)
        with _lock:
            _filters.remove(added)
            if not _filters and logging.getLogRecordFactory() is _clean_record:
                logging.setLogRecordFactory(_plain_record[0])


@contextlib.contextmanager
def scrubbed_output(scrubber: Scrubber) -> Iterator[None]:
    """Scrub what Python code of this process prints while the block runs.

    What programs and C libraries write past Python is not seen.
    """
    out, err = _Scrubbed(sys.stdout, scrubber), _Scrubbed(sys.stderr, scrubber)
    try:
        with (
            contextlib.redirect_stdout(cast(TextIO, out)),
            contextlib.redirect_stderr(cast(TextIO, err)),
        ):
            yield
    finally:
        out.end()
        err.end()


class _Scrubbed:
    """A text stream that holds back what may be the beginning of a secret."""

    def __init__(self, stream: TextIO, scrubber: Scrubber) -> None:
        self._stream = stream
        self._scrubbed = scrubber.stream()
        self._lock = threading.Lock()

    def write(self, text: str) -> int:
        """Pass on what is safe by now."""
        with self._lock:
            self._stream.write(self._scrubbed.feed(text))
        return len(text)

    def end(self) -> None:
        """Pass on the rest."""
        with self._lock, contextlib.suppress(OSError, ValueError):
            self._stream.write(self._scrubbed.end())
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _clean_record(*args: Any, **kwargs: Any) -> logging.LogRecord:
    record = _plain_record[0](*args, **kwargs)
    for one in tuple(_filters):
        one.filter(record)
    return record


def _all_handlers() -> Iterator[logging.Handler]:
    yield from logging.getLogger().handlers
    for logger in list(logging.Logger.manager.loggerDict.values()):
        if isinstance(logger, logging.Logger):
            yield from logger.handlers
