"""The cluster that the modules of clients run against: one node, or three processes."""

from __future__ import annotations

import os
from collections.abc import Callable

from barnabas.app.testing import Kafka

NODES = int(os.environ.get("BARNABAS_TEST_NODES", "1"))
PROGRAM = os.environ.get("BARNABAS_TEST_PROGRAM", "barnabas")
"""`kafka` holds the modules themselves against three nodes of Apache Kafka."""
LASTING = {"log.retention.check.interval.ms": "86400000"}
"""Records of the matrix are older than a week."""
Settle = Callable[[], None]


class SettledKafka(Kafka):
    """Its topics are known to every node before anyone asks for them."""

    settle: Settle

    def topic(self, *arguments: object, **options: object) -> str:
        name = super().topic(*arguments, **options)  # type: ignore[arg-type]
        self.settle()
        return name
