"""Check that the result topics hold every written part whole and once, read as any consumer would.

With the exactly-once option the headers of each result record name its part: a micro-batch of a
pipeline in Python, or what one task of a statement's micro-batch wrote. They also say how many
records the part has. The figures cannot show a record that came twice, since the last value of a
key counts. These counts can.
"""

from __future__ import annotations

from collections import Counter

from barnabas.demo.reading import records_of
from barnabas.demo.topics import OUTPUT_TOPICS
from barnabas.demo.verdict import Check
from barnabas.spark.exactly_once import BATCH_HEADER, QUERY_HEADER, RECORDS_HEADER

_STILL_SECONDS_MAX = 30

Headers = dict[str, str | bytes | None] | list[tuple[str, str | bytes | None]]
"""As the client's types have them; what is read is a list."""
Batch = tuple[str | bytes | None, str | bytes | None]
"""The query, and the part of its results."""


class ResultTally:
    """Counts result records by the part that their headers name."""

    def __init__(self) -> None:
        self.records = 0
        self._read: Counter[Batch] = Counter()
        self._promised: dict[Batch, int] = {}

    def add(self, headers: Headers) -> None:
        """Count one record; one without headers is nobody's, and makes the sum too large."""
        self.records += 1
        by_name = dict(headers)
        if BATCH_HEADER in by_name:
            batch = by_name[QUERY_HEADER], by_name[BATCH_HEADER]
            self._read[batch] += 1
            self._promised[batch] = int(by_name[RECORDS_HEADER] or 0)

    def checks(self) -> list[Check]:
        """Return the counts of read records beside those that the headers promise."""
        promised = sum(self._promised.values())
        batches = len(self._promised)
        whole = sum(self._read[batch] == count for batch, count in self._promised.items())
        return [
            Check("result records", f"{self.records:,}", f"{promised:,}", self.records == promised),
            Check("parts whole and once", f"{whole:,}", f"{batches:,}", whole == batches > 0),
        ]


def check_results(bootstrap: str) -> list[Check]:
    """Read all result topics to their ends, committed records only.

    Raises KafkaException where the cluster does not answer.
    """
    tally = ResultTally()
    for record in records_of(OUTPUT_TOPICS, bootstrap, "result-tally", _STILL_SECONDS_MAX):
        tally.add(record.headers() or [])
    return tally.checks()
