"""Telemetry: one line per event, on standard error, as text or as JSON.

Modules log through `logging.getLogger(__name__)`; this module decides how a line looks.
"""

import json
import logging
import sys
import time
from dataclasses import dataclass
from typing import Final

LEVELS = ("debug", "info", "warning", "error")
TEXT: Final = "text"
JSON: Final = "json"
FORMATS = (TEXT, JSON)
LINE_FORMAT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"
TIME_FORMAT = "%Y-%m-%dT%H:%M:%S%z"
ROOT = "barnabas"


@dataclass(frozen=True, slots=True)
class Logs:
    """Which lines a command prints, and how."""

    level: str = "info"
    format: str = TEXT

    def flags(self) -> list[str]:
        """The options of a command that prints the same."""
        return ["--log-level", self.level, "--log-format", self.format]

    def quieter(self) -> "Logs":
        """The same, but without lines of level info unless another level was chosen."""
        return Logs("warning", self.format) if self.level == "info" else self


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


class JsonFormatter(logging.Formatter):
    """An object per event: timestamp, level, logger, message and, of an error, exception."""

    def format(self, record: logging.LogRecord) -> str:
        """The object on one line, with escapes for what cannot be printed."""
        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        event = {
            "timestamp": f"{seconds}.{int(record.msecs):03}Z",
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        trace = [self.formatException(record.exc_info)] if record.exc_info else []
        if record.stack_info:
            trace.append(self.formatStack(record.stack_info))
        if trace:
            event["exception"] = "\n".join(trace)
        line = json.dumps(event, ensure_ascii=False)
        if line.isprintable():
            return line
        return "".join(
            letter if letter.isprintable() else json.dumps(letter)[1:-1] for letter in line
        )


def formatter(style: str) -> logging.Formatter:
    """The formatter of one of FORMATS."""
    return JsonFormatter() if style == JSON else LineFormatter()


def configure(logs: Logs) -> None:
    """Send the package's lines to standard error.

    As JSON, warnings of other packages are objects too.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter(logs.format))
    logger = logging.getLogger(ROOT)
    logger.handlers = [handler]
    logger.setLevel(logs.level.upper())
    logger.propagate = False
    if logs.format == JSON:
        logging.getLogger().handlers = [handler]
        logging.captureWarnings(capture=True)
