"""Which connectors a worker on Spark distributes, and what the documentation says of it."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

from barnabas.connect.cdc.changes import LogSplit
from barnabas.connect.cdc.snapshot import SnapshotSplit
from barnabas.connect.connectors.base import Connector, TaskContext
from barnabas.connect.connectors.postgres.reader import PostgresReader
from barnabas.connect.plugins import PLUGINS

PAGE = Path(__file__).parents[4] / "docs/connect/engine.md"
IN_THE_WORKER = {
    "FileStreamSourceConnector",
    "FileStreamSinkConnector",
    "MirrorSourceConnector",
    "MirrorCheckpointConnector",
    "MirrorHeartbeatConnector",
    "MongoSourceConnector",
    "JdbcSourceConnector",
    "HttpSource",
    "DatagenConnector",
}


def test_connectors_declare_whether_they_are_worth_distributing() -> None:
    found = set()
    for plugin in PLUGINS.values():
        if plugin.kind in ("source", "sink"):
            module, _, name = plugin.target.partition(":")
            connector: Connector = getattr(import_module(module), name)()
            if not connector.is_worth_distributing({}):
                found.add(plugin.class_name.rpartition(".")[2])
    assert found == IN_THE_WORKER
    section = PAGE.read_text().partition("## What Spark distributes")[2].partition("\n## ")[0]
    assert set(re.findall(r"`(\w+)`", section)) >= found


def test_a_snapshot_of_postgresql_is_and_its_log_is_not() -> None:
    settings = {"topic.prefix": "p", "database.hostname": "h", "database.dbname": "d"}
    settings |= {"database.user": "u", "database.password": "p"}
    reader = PostgresReader(TaskContext("source", 0, settings))
    log = object.__new__(LogSplit)
    snapshot = object.__new__(SnapshotSplit)
    assert not reader.is_worth_distributing([log])
    assert reader.is_worth_distributing([snapshot])
    assert not reader.is_worth_distributing([])
