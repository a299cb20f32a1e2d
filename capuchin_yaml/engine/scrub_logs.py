"""Keeps the secrets of a worker out of every log of its process, whoever writes the line."""

from __future__ import annotations

import contextlib
import logging
import threading
import traceback
from collections.abc import Iterator
from typing import Any

from capuchin_yaml.engine.scrub import Scrubber

_lock = threading.Lock()
_filters: list[ScrubFilter] = []
_plain_record = logging.getLogRecordFactory()


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


_OWN = frozenset(_plain_record("", 0, "", 0, "", (), None).__dict__) | {"message", "asctime"}


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
                logging.setLogRecordFactory(_plain_record)


def _clean_record(*args: Any, **kwargs: Any) -> logging.LogRecord:
    record = _plain_record(*args, **kwargs)
    for one in tuple(_filters):
        one.filter(record)
    return record


def _all_handlers() -> Iterator[logging.Handler]:
    yield from logging.getLogger().handlers
    for logger in list(logging.Logger.manager.loggerDict.values()):
        if isinstance(logger, logging.Logger):
            yield from logger.handlers
