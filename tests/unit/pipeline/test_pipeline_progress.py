"""What the pipeline says about itself: offsets from Spark's JSON and checkpoints, groups, file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from barnabas.app.testing import Kafka
from barnabas.pipeline.progress import (
    ProgressBoard,
    QueryReach,
    committed_offsets,
    group_offsets,
)


def progress(batch_id: int, rows: int, end_offset: str, dropped: tuple[int, ...] = ()) -> Any:
    return {
        "batchId": batch_id,
        "numInputRows": rows,
        "stateOperators": [{"numRowsDroppedByWatermark": number} for number in dropped],
        "sources": [{"endOffset": end_offset}],
    }


def test_a_micro_batch_moves_the_reach_once() -> None:
    reach = QueryReach("g", "t")
    assert reach.observe(progress(4, 10, '{"t":{"0":7,"1":3}}', (0, 2)))
    assert not reach.observe(progress(4, 10, '{"t":{"0":7,"1":3}}', (0, 2)))
    assert not reach.observe(progress(5, 0, '{"t":{"0":7,"1":3}}'))
    assert reach.observe(progress(5, 1, '{"t":{"0":8,"1":3}}'))
    assert (reach.batches, reach.rows, reach.dropped_late) == (2, 11, 2)
    assert reach.offsets == {0: 8, 1: 3}


@pytest.mark.parametrize(
    ("commits", "expected"),
    [
        ([], None),
        ([0], '{"t":{"0":10}}'),
        ([0, 9, 10], '{"t":{"0":110}}'),  # batch 11 is planned and not committed
    ],
)
def test_a_checkpoint_tells_what_is_committed(
    tmp_path: Path, commits: list[int], expected: str | None
) -> None:
    for name in ("offsets", "commits"):
        (tmp_path / name).mkdir()
    for batch in (0, 9, 10, 11):
        line = json.dumps({"t": {"0": (batch + 1) * 10}}, separators=(",", ":"))
        (tmp_path / "offsets" / str(batch)).write_text(f'v1\n{{"batchWatermarkMs":0}}\n{line}')
    for batch in commits:
        (tmp_path / "commits" / str(batch)).write_text("v1\n{}")
        (tmp_path / "commits" / f".{batch}.crc").write_bytes(b"")
    assert committed_offsets(str(tmp_path)) == expected


def test_no_checkpoint_tells_nothing(tmp_path: Path) -> None:
    assert committed_offsets(str(tmp_path / "absent")) is None


def test_a_group_is_as_far_as_its_slowest_query() -> None:
    queries = {
        "fast": QueryReach("shared", "t", {0: 9, 1: 4, 2: 5}),
        "slow": QueryReach("shared", "t", {0: 7, 1: 6}),
        "own": QueryReach("own", "u", {0: 1}),
    }
    assert group_offsets(queries) == {"shared": ("t", {0: 7, 1: 4}), "own": ("u", {0: 1})}


def test_the_file_and_the_groups_show_the_reach(kafka: Kafka, tmp_path: Path) -> None:
    topic = kafka.topic(partitions=2)
    group = kafka.name("group")
    path = tmp_path / "progress.json"
    reach = QueryReach(group, topic, {0: 5, 1: 0}, batches=3, rows=12)
    board = ProgressBoard(str(path), kafka.bootstrap_servers, {"query": reach})
    board.write("running")
    assert board.commit() == []
    board.close()
    written = json.loads(path.read_text())
    assert written["state"] == "running"
    assert written["queries"] == {
        "query": {
            "group": group,
            "topic": topic,
            "offsets": {"0": 5, "1": 0},
            "batches": 3,
            "rows": 12,
            "dropped_late": 0,
        }
    }
    committed = kafka.admin.list_consumer_group_offsets(_request(group))[group].result()
    assert {p.partition: p.offset for p in committed.topic_partitions} == {0: 5, 1: 0}


def _request(group: str) -> list[Any]:
    from confluent_kafka import ConsumerGroupTopicPartitions

    return [ConsumerGroupTopicPartitions(group)]
