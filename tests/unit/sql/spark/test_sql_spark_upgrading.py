"""The checkpoint of a plan, and of another one that takes its place."""

from __future__ import annotations

import json
import resource
from dataclasses import replace
from pathlib import Path

import pytest

from barnabas.sql.plan.encoding import encode_plan
from barnabas.sql.spark.checkpoint import (
    CheckpointError,
    open_checkpoint,
    shape_of,
    why_not_replaced,
)
from barnabas.sql.spark.hosted import HostedPlan
from barnabas.sql.spark.hosting import Hosting
from support.sql_queries import plans_of

SOURCES = (
    "CREATE STREAM s (k STRING KEY, v INT, w INT) WITH (kafka_topic='s', value_format='JSON');"
    "CREATE STREAM o (k STRING KEY, v INT, w INT) WITH (kafka_topic='o', value_format='JSON');"
)
SUM = "CREATE TABLE t AS SELECT k, SUM(v) AS total FROM s GROUP BY k;"


def encoded(statement: str) -> tuple[str, str]:
    (plan,) = plans_of(SOURCES + statement, {"s": 2, "o": 2, "T": 2})
    text = encode_plan(replace(plan, query_id="Q"))
    hosted = HostedPlan(Hosting("Q", text, 1, 1))
    return text, shape_of(hosted.topology, hosted.stages)


REPLACED: list[tuple[str, str]] = [
    (SUM, ""),
    ("CREATE TABLE t AS SELECT k, SUM(v) AS total FROM s WHERE v > 3 GROUP BY k;", ""),
    (
        "CREATE TABLE t AS SELECT k, SUM(v) AS total FROM s GROUP BY k HAVING SUM(v) > 3;",
        "matching functions",
    ),
    ("CREATE TABLE t AS SELECT k, MAX(v) AS total FROM s GROUP BY k;", "must have matching"),
    ("CREATE TABLE t AS SELECT w, SUM(v) AS total FROM s GROUP BY w;", "differ"),
    ("CREATE TABLE t AS SELECT k, SUM(v) AS total FROM o GROUP BY k;", "topics that they read"),
]


@pytest.mark.parametrize(("statement", "reason"), REPLACED)
def test_which_statements_go_on_from_the_checkpoint(
    tmp_path: Path, statement: str, reason: str
) -> None:
    old, old_shape = encoded(SUM)
    new, new_shape = encoded(statement)
    first = open_checkpoint(str(tmp_path), old, 2, 2, old_shape)
    found = why_not_replaced(old, old_shape, new, new_shape)
    if reason:
        assert reason in found
        with pytest.raises(CheckpointError, match="the checkpoint of another plan"):
            open_checkpoint(str(tmp_path), new, 4, 4, new_shape)
        return
    assert found == ""
    second = open_checkpoint(str(tmp_path), new, 4, 4, new_shape)
    assert (second.partitions, second.tasks, second.state_name) == (2, 2, first.state_name)
    assert open_checkpoint(str(tmp_path), new, 2, 2, new_shape) == second


def test_a_checkpoint_of_before_goes_on_with_its_own_plan_alone(tmp_path: Path) -> None:
    old, shape = encoded(SUM)
    made = open_checkpoint(str(tmp_path), old, 2, 2, shape)
    path = tmp_path / "plan.json"
    stored = json.loads(path.read_text())
    del stored["plan"], stored["shape"]
    path.write_text(json.dumps(stored))
    new, new_shape = encoded(REPLACED[1][0])
    with pytest.raises(CheckpointError, match="It does not say of which plan it is"):
        open_checkpoint(str(tmp_path), new, 2, 2, new_shape)
    assert open_checkpoint(str(tmp_path), old, 2, 2, shape) == made
    assert open_checkpoint(str(tmp_path), new, 2, 2, new_shape).plan == new


DAMAGED: list[tuple[str, str]] = [
    ("", "cannot read"),
    ("{", "cannot read"),
    ("[]", "another version"),
    ('{"version": 1}', "cannot read"),
    ('{"version": 1, "unknown": 1}', "cannot read"),
    ('{"version": 9}', "another version"),
]


@pytest.mark.parametrize(("text", "message"), DAMAGED)
def test_a_damaged_checkpoint_is_told_of(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "plan.json").write_text(text)
    with pytest.raises(CheckpointError, match=message):
        open_checkpoint(str(tmp_path), "plan", 1, 1)


def test_the_checkpoint_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    with pytest.raises(CheckpointError, match="of something else"):
        open_checkpoint(str(tmp_path), "plan", 1, 1)
    assert not (tmp_path / "plan.json").exists()


def test_a_full_disk_damages_no_checkpoint(tmp_path: Path) -> None:
    old, old_shape = encoded(SUM)
    new, new_shape = encoded(REPLACED[1][0])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def full(plan: str, shape: str) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
        try:
            with pytest.raises(OSError, match="File too large"):
                open_checkpoint(str(tmp_path), plan, 2, 2, shape)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    full(old, old_shape)
    made = open_checkpoint(str(tmp_path), old, 2, 2, old_shape)
    full(new, new_shape)
    assert open_checkpoint(str(tmp_path), old, 2, 2, old_shape) == made
    assert open_checkpoint(str(tmp_path), new, 2, 2, new_shape).plan == new
