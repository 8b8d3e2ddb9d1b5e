"""Times that SQLite holds as texts."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from barnabas.connect.connectors.jdbc.connectors import JdbcSource
from barnabas.schemas.data.errors import ConfigError
from support.connect.reading import SourceDriver


@pytest.mark.parametrize("mode", ["timestamp", "timestamp+incrementing"])
def test_texts_in_the_place_of_times_are_told(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "shop.db"
    connection = sqlite3.connect(path)
    try:
        connection.execute("CREATE TABLE orders (id integer, changed timestamp)")
        connection.execute("INSERT INTO orders VALUES (1, NULL)")
        connection.commit()
        given = {
            "connection.url": f"jdbc:sqlite:{path}",
            "mode": mode,
            "incrementing.column.name": "id",
            "timestamp.column.name": "changed",
            "topic.prefix": "p-",
            "poll.interval.ms": "0",
        }
        connector = JdbcSource()
        connector.start(None, given)
        (settings,) = connector.task_settings(1)
        driver = SourceDriver(connector, settings)
        assert driver.batch() == []
        connection.execute("UPDATE orders SET changed = datetime('now', '-1 day')")
        connection.commit()
        with pytest.raises(ConfigError, match="changed of orders has texts"):
            driver.batch()
        driver.stop()
    finally:
        connection.close()
