"""Errors keep what they say and lose what they must not say, down to the last cause."""

from __future__ import annotations

import contextlib
import io
import logging
import sys
from datetime import timedelta

from temporalio.exceptions import ApplicationError

from capuchin_yaml.engine.scrub import Scrubber
from capuchin_yaml.engine.scrub_boundary import scrubbed_error
from capuchin_yaml.engine.scrub_logs import scrubbed_logs, scrubbed_output

SECRET = "sk-test-0123-4567"


def scrubber() -> Scrubber:
    made = Scrubber()
    made.add("KEY", SECRET)
    return made


def test_an_error_without_secrets_is_left_as_it_is() -> None:
    error = ApplicationError("wrong", {"a": 1})
    error.__cause__ = ValueError("because")

    assert scrubbed_error(error, scrubber()) is error


def test_a_secret_is_found_in_message_details_and_causes() -> None:
    error = ApplicationError(
        f"401 {SECRET}",
        {"header": [SECRET]},
        type="Refused",
        non_retryable=True,
        next_retry_delay=timedelta(seconds=3),
    )
    error.__cause__ = ValueError("between")
    error.__cause__.__cause__ = KeyError(SECRET)
    clean = scrubbed_error(error, scrubber())

    assert isinstance(clean, ApplicationError)
    assert clean.message == "401 [secret KEY]"
    assert clean.details == ({"header": ["[secret KEY]"]},)
    assert (clean.type, clean.non_retryable) == ("Refused", True)
    assert clean.next_retry_delay == timedelta(seconds=3)
    assert "between" in str(clean.__cause__)
    assert clean.__cause__ is not None
    assert "[secret KEY]" in str(clean.__cause__.__cause__)
    assert SECRET not in repr([clean, clean.__cause__, clean.__cause__.__cause__])


def test_causes_that_go_round_come_to_an_end() -> None:
    first, second = ValueError(SECRET), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    clean: BaseException | None = scrubbed_error(first, scrubber())
    texts = []
    while clean is not None:
        texts.append(str(clean))
        clean = clean.__cause__

    assert 1 < len(texts) <= 20
    assert SECRET not in "".join(texts)


def test_what_python_code_prints_is_scrubbed_also_in_pieces() -> None:
    screen = io.StringIO()
    with contextlib.redirect_stderr(screen):
        with scrubbed_output(scrubber()):
            for piece in ("key ", SECRET[:5], SECRET[5:], " sk-te"):
                sys.stderr.write(piece)
            sys.stderr.flush()
        sys.stderr.write(SECRET)

    assert screen.getvalue() == f"key [secret KEY] sk-te{SECRET}"


def test_a_handler_added_later_and_values_beside_the_text_are_scrubbed_too() -> None:
    screen = io.StringIO()
    handler = logging.StreamHandler(screen)
    handler.setFormatter(logging.Formatter("%(message)s %(where)s"))
    logger = logging.getLogger("tests.added_later")
    logger.propagate = False
    with scrubbed_logs(scrubber()), scrubbed_logs(Scrubber()):
        logger.addHandler(handler)
        logger.warning("said %s", SECRET, extra={"where": "there"})
    logger.removeHandler(handler)

    assert screen.getvalue() == "said [secret KEY] there\n"


def test_afterwards_logging_is_what_it_was() -> None:
    before = logging.getLogRecordFactory()
    with scrubbed_logs(scrubber()):
        assert logging.getLogRecordFactory() is not before

    assert logging.getLogRecordFactory() is before
