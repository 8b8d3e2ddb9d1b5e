"""The history of one table: how far a connector has come, and commits that nobody is ahead of.

Iceberg applies an append to the current state of the table, so a task that lost its partitions long
ago could still add its rows. So a change is written to a new branch, which begins at the table's
current state. Once it is there, `main` (or the branch that commits go to) is moved on to it, which
Iceberg refuses if that has moved in the meantime: what the table said when the branch was made is
true
when it becomes the table.

The summary of a connector's newest snapshot has the connector's progress. Others may write behind
it, join its files or expire snapshots: a tag keeps that one, moved in the same commit as the
branch.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from uuid import uuid4

MAIN: Final = "main"
ABANDONED_AFTER_MS: Final = 24 * 60 * 60 * 1000
"""A branch that a crash left over goes with the next expiry of snapshots after this time."""
FOR_EVER_MS: Final = 2**63 - 1
TAG: Final = "barnabas_offsets_"
_log: Final = logging.getLogger(__name__)


class History:
    """One table's snapshots, as they are now. Its methods raise what Py4J and PySpark do.

    `target` is the branch that commits go to; it begins as `main` is.
    """

    def __init__(self, spark: Any, name: str, offsets_property: str, target: str = MAIN) -> None:
        load = spark._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable
        self._table = load(spark._jsparkSession, name)
        self._property = offsets_property
        self._target = target

    def offsets(self, branch: str | None = None) -> dict[str, int]:
        """Return the offsets that the newest snapshot of a branch with any has.

        If none is left and snapshots have expired, that is the tagged one.
        """
        snapshot = self._table.snapshot(branch) if branch is not None else self._head()
        while snapshot is not None:
            offsets = self._offsets_of(snapshot)
            if offsets:
                return offsets
            parent = snapshot.parentId()
            if parent is None:
                return {}
            snapshot = self._table.snapshot(parent)
            if snapshot is None:
                return self._tagged_offsets()
        return {}

    def _offsets_of(self, snapshot: Any) -> dict[str, int]:
        text = snapshot.summary().get(self._property)
        offsets: dict[str, int] = json.loads(text) if text else {}
        return offsets

    def _tagged_offsets(self) -> dict[str, int]:
        refs = self._table.refs()
        target = self._target if refs.containsKey(self._target) else MAIN
        tag = self._tag(target)
        return self._offsets_of(self._table.snapshot(tag)) if refs.containsKey(tag) else {}

    def _tag(self, target: str) -> str:
        connector = self._property.partition(".offsets.")[2]
        return f"{TAG}{connector}" + ("" if target == MAIN else f"@{target}")

    def _head(self) -> Any:
        refs = self._table.refs()
        return self._table.snapshot(self._target if refs.containsKey(self._target) else MAIN)

    @contextmanager
    def branch(self) -> Iterator[str]:
        """Yield a branch that becomes the table in the end, unless that has come further."""
        name = f"barnabas_{uuid4().hex}"
        head = self._head()
        start = () if head is None else (head.snapshotId(),)
        snapshots = self._table.manageSnapshots().createBranch(name, *start)
        snapshots.setMaxRefAgeMs(name, ABANDONED_AFTER_MS).commit()
        try:
            self._table.refresh()
            yield name
            self._table.refresh()
            snapshots = self._table.manageSnapshots().fastForwardBranch(self._target, name)
            self._keep_offsets(snapshots, self._table.snapshot(name))
            snapshots.removeBranch(name).commit()
        except BaseException:
            self._drop(name)
            raise

    def _keep_offsets(self, snapshots: Any, written: Any) -> None:
        """Move the tag, in the same commit."""
        if written is None or not self._offsets_of(written):
            return
        tag = self._tag(self._target)
        if self._table.refs().containsKey(tag):
            snapshots.replaceTag(tag, written.snapshotId())
        else:
            snapshots.createTag(tag, written.snapshotId()).setMaxRefAgeMs(tag, FOR_EVER_MS)

    def table(self) -> Any:
        """Return Iceberg's table, as it is now."""
        self._table.refresh()
        return self._table

    def _drop(self, branch: str) -> None:
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # Py4J has none
        from pyspark.errors import PySparkException

        try:
            self._table.refresh()
            if self._table.refs().containsKey(branch):
                self._table.manageSnapshots().removeBranch(branch).commit()
        except (Py4JError, PySparkException):
            _log.debug("branch %s could not be removed", branch, exc_info=True)
