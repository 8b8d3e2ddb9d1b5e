"""Where signals come from beside the log.

Source: Debezium's documentation, "Sending signals to a Debezium connector".
"""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

from barnabas.connect.connectors.postgres.adhoc.signals import Signal
from barnabas.connect.connectors.postgres.settings import PostgresSettings

_log = logging.getLogger(__name__)


class FileChannel:
    """A file with a JSON object a line: id, type and data. Lines that are read are taken out."""

    def __init__(self, settings: PostgresSettings) -> None:
        self._path = Path(settings["signal.file"])

    def read(self) -> list[Signal]:
        """Return the signals there are."""
        try:
            if not self._path.is_file():
                return []
            lines = self._path.read_text().splitlines()
            if lines:
                self._path.write_text("")
        except (OSError, UnicodeDecodeError) as error:
            _log.warning("The file of signals %s cannot be read: %s", self._path, error)
            return []
        return [signal for line in lines if (signal := signal_of(line)) is not None]


def signal_of(text: str) -> Signal | None:
    """Read a signal from JSON; None, and a word in the log, where that is impossible."""
    if not text.strip():
        return None
    try:
        said: Any = json.loads(text)
        data = said.get("data")
        return Signal(
            str(said["id"]),
            str(said["type"]),
            data if data is None or isinstance(data, str) else json.dumps(data),
        )
    except (ValueError, KeyError, AttributeError) as error:
        _log.warning("A signal is passed over, which cannot be read: %s", error)
        return None
