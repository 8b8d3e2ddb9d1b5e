"""Where a query's entries for the processing log go."""

from __future__ import annotations

import logging
from collections.abc import Callable

from barnabas.sql.processing_log import Entry, logger_name

_processing_log = logging.getLogger("barnabas.sql.processing")

NoteEntry = Callable[[str, Entry], None]
"""Takes a query's id and an entry. May be called in any thread; never blocks and never raises."""


def log_entry(query_id: str, entry: Entry) -> None:
    """Write the entry's line into this process's own log: never a record's content."""
    _processing_log.info("%s: %s", logger_name(query_id, entry.step), entry.text)
