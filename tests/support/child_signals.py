"""Signals as a child of a terminal has them, regardless of how the tests were started.

A script's background job ignores SIGINT and nohup ignores SIGHUP, and children inherit that.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def usual_signals() -> Iterator[None]:
    """Children that are started in the block are ended by SIGINT and SIGHUP, unless they object."""
    before = {
        signal.SIGINT: signal.signal(signal.SIGINT, signal.default_int_handler),
        signal.SIGHUP: signal.signal(signal.SIGHUP, signal.SIG_DFL),
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
