"""A task that lost its partitions commits late: what the new task has committed stays as it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from barnabas.connect.connectors.base import TaskContext
from barnabas.connect.connectors.delta.connectors import DeltaSink
from barnabas.connect.connectors.lake.sink import Change
from barnabas.schemas.data.errors import RetriableError
from support.connect.lake_task import LakeTask

APPENDS = {
    "delta.tables": "orders",
    "delta.tables.auto-create-enabled": "true",
    "delta.control.commit.interval-ms": "0",
}
UPSERTS = {
    **APPENDS,
    "delta.tables.upsert-mode-enabled": "true",
    "delta.tables.default-id-columns": "key",
}


def task(directory: Path, settings: dict[str, str]) -> LakeTask:
    given = {**settings, "delta.location": str(directory)}
    return LakeTask(DeltaSink().writer(TaskContext("lake", 0, given)))


def offsets_of(directory: Path) -> list[int]:
    return sorted(DeltaTable(directory / "orders").to_pyarrow_table()["offset"].to_pylist())


@pytest.mark.parametrize("settings", [APPENDS, UPSERTS], ids=["appends", "upserts"])
def test_a_late_commit_is_refused_and_then_adds_what_is_new(
    tmp_path: Path, settings: dict[str, str]
) -> None:
    old, new = task(tmp_path, settings), task(tmp_path, settings)
    old.commit(*old.written(0, 5))
    old_work = old.written(5, 20)
    new.commit(*new.written(5, 15))
    before = offsets_of(tmp_path)
    with pytest.raises(RetriableError, match="orders-0"):
        old.commit(*old_work)
    assert offsets_of(tmp_path) == before
    old.commit(*old_work)
    new.commit_until_done(15, 30)
    assert offsets_of(tmp_path) == (list(range(30)) if settings is APPENDS else [27, 28, 29])


@pytest.mark.parametrize("settings", [APPENDS, UPSERTS], ids=["appends", "upserts"])
def test_a_commit_between_a_look_at_the_table_and_its_commit_is_seen(
    tmp_path: Path, settings: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = task(tmp_path, settings), task(tmp_path, settings)
    old.commit(*old.written(0, 5))
    new_work = new.written(5, 15)
    call: Callable[..., None] = Change.check
    left = [1]

    def check(self: Change, found: Any) -> None:
        call(self, found)
        if left:
            left.pop()
            new.commit(*new_work)

    monkeypatch.setattr(Change, "check", check)
    with pytest.raises(RetriableError):
        old.commit(*old.written(5, 20))
    old.commit(*old.written(5, 20))
    found = offsets_of(tmp_path)
    assert found == (list(range(20)) if settings is APPENDS else [17, 18, 19])
