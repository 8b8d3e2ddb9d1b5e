"""Telemetry: one line per event, on standard error.

Modules say it through `logging.getLogger(__name__)`; this module decides how it looks.
"""

import logging
import sys

LEVELS = ("debug", "info", "warning", "error")
LINE_FORMAT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"
TIME_FORMAT = "%Y-%m-%dT%H:%M:%S%z"
ROOT = "barnabas"


class LineFormatter(logging.Formatter):
    """One line per event: what clients call themselves and their resources cannot add lines."""

    def __init__(self) -> None:
        super().__init__(LINE_FORMAT, datefmt=TIME_FORMAT)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  # logging's name
        """The line, with escapes for what cannot be printed."""
        line = super().formatMessage(record)
        if line.isprintable():
            return line
        return "".join(
            letter if letter.isprintable() else letter.encode("unicode_escape").decode()
            for letter in line
        )


def configure(level: str = "info") -> None:
    """Send the package's lines of `level` and above to standard error, in UTC-offset time."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter())
    logger = logging.getLogger(ROOT)
    logger.handlers = [handler]
    logger.setLevel(level.upper())
    logger.propagate = False
