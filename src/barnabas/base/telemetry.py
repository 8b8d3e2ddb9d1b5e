"""Telemetry: one line per event, on standard error.

Modules say it through `logging.getLogger(__name__)`; this module decides how it looks.
"""

import logging
import sys

LEVELS = ("debug", "info", "warning", "error")
LINE_FORMAT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"
TIME_FORMAT = "%Y-%m-%dT%H:%M:%S%z"
ROOT = "barnabas"


def configure(level: str = "info") -> None:
    """Send the package's lines of `level` and above to standard error, in UTC-offset time."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter(LINE_FORMAT, datefmt=TIME_FORMAT))
    logger = logging.getLogger(ROOT)
    logger.handlers = [handler]
    logger.setLevel(level.upper())
    logger.propagate = False
