"""What a checkpoint says of how far its query is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from barnabas.pipeline.progress import committed_offsets


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


def test_no_checkpoint_tells_nothing(tmp_path: Path) -> None:
    assert committed_offsets(str(tmp_path / "absent")) == {}
