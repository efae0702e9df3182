"""What boto3 logs of our requests stays out of the function's own log.

At DEBUG botocore writes whole requests, and with them results and credentials, and at INFO where it
found what; all of it goes to whatever log the function has configured. What it logs of the
function's own requests, in this thread or in another, is left alone.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_LIBRARIES = frozenset({"boto3", "botocore", "urllib3"})


class _Thread(threading.local):
    asks_for_us = False


_thread = _Thread()


@contextmanager
def muted() -> Iterator[None]:
    """What the libraries log in this thread meanwhile is dropped."""
    _hush()
    outer = _thread.asks_for_us
    _thread.asks_for_us = True
    try:
        yield
    finally:
        _thread.asks_for_us = outer


def _hush() -> None:
    """A filter on a logger does not count for the loggers below it, so each gets one."""
    for name, logger in list(logging.root.manager.loggerDict.items()):
        if name.partition(".")[0] in _LIBRARIES and isinstance(logger, logging.Logger):
            logger.addFilter(_is_the_functions_own)  # a second time changes nothing


def _is_the_functions_own(record: logging.LogRecord) -> bool:
    return not _thread.asks_for_us
