"""A snapshot that is put off."""

from __future__ import annotations

import pytest

from barnabas.connect.connectors.postgres.settings import PostgresSettings
from barnabas.connect.connectors.postgres.snapshot import HeldSnapshot
from barnabas.schemas.data.errors import RetriableError


def test_a_task_that_ends_does_not_wait_for_its_snapshot() -> None:
    settings = PostgresSettings.parse(
        {
            "topic.prefix": "p",
            "database.hostname": "nowhere.invalid",
            "database.user": "u",
            "database.dbname": "d",
            "snapshot.delay.ms": "3600000",
        }
    )
    waits: list[float] = []

    def wait(seconds: float) -> bool:
        waits.append(seconds)
        return True

    with pytest.raises(RetriableError, match="the task ends before its snapshot is due"):
        HeldSnapshot(settings, None, wait=wait)
    assert waits == [3600.0]
