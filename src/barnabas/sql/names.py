"""Names in SQL: unquoted ones are upper case, quoted ones are taken as they stand."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

_RESERVED = """
ADVANCE ALL AND AS AT BEGINNING BETWEEN BY CASE CAST CATALOG CONNECTOR CONNECTORS CREATE DAYS
DECIMAL DELETE DESCRIBE DISTINCT DROP ELSE END EXISTS EXPORT EXTENDED FALSE FROM FULL GROUP HAVING
HOPPING HOURS IN INNER INSERT INTO IS JOIN LEFT LIKE LIMIT LIST LOAD MATERIALIZED MILLISECOND
MILLISECONDS MINUTES MONTHS NAMESPACE NOT NULL ON OR OUTER PAUSE PRINT PROPERTIES QUERIES QUERY
RENAME RESUME RETENTION RIGHT RUN SAMPLE SCRIPT SECONDS SELECT SIZE STREAM STREAMS TABLE TERMINATE
THEN TO TOPIC TOPICS TRUE TUMBLING UNSET VALUES VIEW WHEN WHERE WINDOW WITH WITHIN YEARS
"""

RESERVED = frozenset(_RESERVED.split())
"""Words that cannot be names without quotes."""

_PLAIN = re.compile(r"[A-Z_][A-Z0-9_@]*\Z|(?![0-9]+(E[0-9]+)?\Z)[0-9][A-Z0-9_@]+\Z")


def quoted(name: str) -> str:
    """The name as it must be written in a statement: in back quotes unless it is plain."""
    return name if _PLAIN.match(name) and name not in RESERVED else backquoted(name)


def backquoted(name: str) -> str:
    """The name in back quotes, as ksqlDB's messages show the names of columns and fields."""
    return "`" + name.replace("`", "``") + "`"


def unquoted(name: str) -> str:
    """The name as it is, as ksqlDB's messages show the names within expressions."""
    return name


def repeated(names: Iterable[str]) -> frozenset[str]:
    """The names that occur more than once."""
    return frozenset(name for name, count in Counter(names).items() if count > 1)
