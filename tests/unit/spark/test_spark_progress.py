"""A query's progress, read from its checkpoint."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from barnabas.spark.progress import (
    committed_offsets,
    committed_positions,
    planned_offsets,
    planned_sources,
)


@pytest.mark.parametrize(
    ("commits", "expected"),
    [
        ([], {}),
        ([0], {"t": {0: 10}}),
        ([0, 9, 10], {"t": {0: 110}}),  # batch 11 is planned and not committed
    ],
)
def test_a_checkpoint_tells_what_is_committed(
    tmp_path: Path, commits: list[int], expected: dict[str, dict[int, int]]
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


def test_sources_that_are_no_topics_tell_nothing(tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "0").write_text('v1\n{}\n{"logOffset":3}\n7\n{"t":{"0":5}}')
    assert planned_offsets(str(tmp_path), 0) == {"t": {0: 5}}


def test_a_start_goes_on_where_the_last_planned_micro_batch_ends(tmp_path: Path) -> None:
    assert planned_sources(str(tmp_path)) == []
    (tmp_path / "offsets").mkdir()
    for batch in (9, 10):
        lines = f'v1\n{{}}\n{{"t":{{"0":{batch}}}}}\n{{"s":{{"0":5}}}}'
        (tmp_path / "offsets" / str(batch)).write_text(lines)
        (tmp_path / "offsets" / f".{batch}.crc").write_bytes(b"")
    assert planned_sources(str(tmp_path)) == ['{"t":{"0":10}}', '{"s":{"0":5}}']


def test_no_checkpoint_tells_nothing(tmp_path: Path) -> None:
    assert committed_offsets(str(tmp_path / "absent")) == {}


def test_positions_before_the_first_micro_batch_are_the_checkpoints(tmp_path: Path) -> None:
    for name, text in (("offsets", 'v1\n{}\n{"t":{"0":7,"1":3}}'), ("commits", "v1\n{}")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "0").write_text(text)
    assert committed_positions(str(tmp_path)) == {("t", 0): (7, 7), ("t", 1): (3, 3)}
