"""Iceberg's tables are tended in their intervals, and what the sink goes on from outlives that."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import MagicMock

import pytest

from barnabas.connect.connectors.iceberg.tables import (
    FOR_EVER_MS,
    MAIN,
    History,
    Maintenance,
    expire_snapshots,
    rewrite_data_files,
)

OURS = "barnabas.connect.offsets.orders"
TAG = "barnabas_offsets_orders"


def test_each_job_is_due_once_in_its_interval_for_each_table() -> None:
    now = 100.0
    upkeep = Maintenance(expire_ms=10_000, rewrite_ms=4_000, now_s=lambda: now)
    assert upkeep.due("a") == []
    now = 103.0
    assert upkeep.due("a") == upkeep.due("b") == []
    now = 104.0
    assert upkeep.due("a") == [rewrite_data_files]
    assert upkeep.due("a") == upkeep.due("b") == []
    now = 113.0
    assert upkeep.due("a") == [rewrite_data_files, expire_snapshots]
    assert upkeep.due("b") == [rewrite_data_files, expire_snapshots]


def test_nothing_is_due_unless_it_is_wanted() -> None:
    now = 0.0
    upkeep = Maintenance(expire_ms=0, rewrite_ms=0, now_s=lambda: now)
    assert upkeep.due("a") == []
    now = 1e9
    assert upkeep.due("a") == []


def test_what_fails_is_told_and_no_more(caplog: pytest.LogCaptureFixture) -> None:
    from pyspark.errors import PySparkException

    def failing(spark: Any, table: Any) -> None:
        raise PySparkException("no bucket")

    Maintenance(expire_ms=1, rewrite_ms=1).do(failing, None, None, lambda error: "hidden")
    assert caplog.messages == ["failing failed: hidden"]


@dataclass
class Snapshot:
    """One of a table's, with our offset or without."""

    number: int
    parent: int | None
    offset: int | None

    def snapshotId(self) -> int:  # noqa: N802 - as in Java
        return self.number

    def parentId(self) -> int | None:  # noqa: N802 - as in Java
        return self.parent

    def summary(self) -> dict[str, str]:
        return {} if self.offset is None else {OURS: json.dumps({"orders-0": self.offset})}


@dataclass
class Refs:
    """A table's branches and tags, and the snapshots that they name."""

    named: dict[str, int] = field(default_factory=dict)

    def containsKey(self, name: str) -> bool:  # noqa: N802 - as in Java
        return name in self.named


@dataclass
class Table:
    """A table of Iceberg as far as a history asks. Its changes are done at once."""

    snapshots: dict[int, Snapshot] = field(default_factory=dict)
    names: Refs = field(default_factory=Refs)
    ages: dict[str, int] = field(default_factory=dict)

    def add(self, offset: int | None, branch: str = MAIN) -> None:
        number = len(self.snapshots) + 1
        self.snapshots[number] = Snapshot(number, self.names.named.get(branch), offset)
        self.names.named[branch] = number

    def expire(self) -> None:
        """Drop what has no name."""
        for number in self.snapshots.keys() - set(self.names.named.values()):
            del self.snapshots[number]

    def refs(self) -> Refs:
        return self.names

    def refresh(self) -> None:
        pass

    def snapshot(self, what: str | int) -> Snapshot | None:
        number = self.names.named.get(what) if isinstance(what, str) else what
        return None if number is None else self.snapshots.get(number)

    def manageSnapshots(self) -> Table:  # noqa: N802 - as in Java
        return self

    def createBranch(self, name: str, start: int) -> Table:  # noqa: N802 - as in Java
        self.names.named[name] = start
        return self

    def fastForwardBranch(self, name: str, other: str) -> Table:  # noqa: N802 - as in Java
        self.names.named[name] = self.names.named[other]
        return self

    def removeBranch(self, name: str) -> Table:  # noqa: N802 - as in Java
        del self.names.named[name]
        return self

    def createTag(self, name: str, number: int) -> Table:  # noqa: N802 - as in Java
        assert name not in self.names.named
        return self.replaceTag(name, number)

    def replaceTag(self, name: str, number: int) -> Table:  # noqa: N802 - as in Java
        self.names.named[name] = number
        return self

    def setMaxRefAgeMs(self, name: str, age_ms: int) -> Table:  # noqa: N802 - as in Java
        self.ages[name] = age_ms
        return self

    def commit(self) -> None:
        pass


def history(table: Table, target: str = MAIN) -> History:
    """The history of a connector's table, without Spark."""
    spark = MagicMock()
    spark._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable.return_value = table
    return History(spark, "a", OURS, target)


def write(table: Table, offset: int | None, target: str = MAIN) -> None:
    with history(table, target).branch() as branch:
        table.add(offset, branch)


def test_offsets_outlive_the_snapshots_that_others_let_expire() -> None:
    table = Table()
    table.add(None)
    write(table, 7)
    write(table, 9)
    assert history(table).offsets() == {"orders-0": 9}
    table.add(None)  # somebody joins files
    table.add(None)
    table.expire()
    assert len(table.snapshots) == 2
    assert history(table).offsets() == {"orders-0": 9}
    with history(table).branch() as branch:
        assert history(table).offsets(branch) == {"orders-0": 9}
    write(table, 12)
    assert history(table).offsets() == {"orders-0": 12}
    assert table.ages[TAG] == FOR_EVER_MS
    assert table.names.named.keys() == {MAIN, TAG}


def test_a_branch_of_its_own_has_a_tag_of_its_own() -> None:
    table = Table()
    table.add(None)
    write(table, 7)
    write(table, 9, "audit")
    assert table.names.named.keys() == {MAIN, "audit", TAG, f"{TAG}@audit"}
    for branch in (MAIN, "audit"):
        table.add(None, branch)
        table.add(None, branch)
    table.expire()
    assert history(table).offsets() == {"orders-0": 7}
    assert history(table, "audit").offsets() == {"orders-0": 9}
    assert history(table, "new").offsets() == {"orders-0": 7}  # it begins as main is


def test_a_table_that_was_set_back_tells_its_older_offsets() -> None:
    table = Table()
    table.add(None)
    write(table, 7)
    before = table.names.named[MAIN]
    write(table, 9)
    table.names.named[MAIN] = before
    assert history(table).offsets() == {"orders-0": 7}


def test_a_commit_that_wrote_no_offsets_moves_no_tag() -> None:
    table = Table()
    table.add(None)
    write(table, 7)
    write(table, None)
    assert table.snapshots[table.names.named[TAG]].offset == 7


def test_a_table_without_tags_of_before_there_were_any() -> None:
    table = Table()
    for _ in range(3):
        table.add(None)
    table.expire()
    assert history(table).offsets() == {}
