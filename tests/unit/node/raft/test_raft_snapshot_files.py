"""Snapshot files: what is written is read, what is torn is refused."""

from pathlib import Path

import pytest

from barnabas.base.local_disk import LocalDisk
from barnabas.node.raft import snapshot_files
from barnabas.node.raft.snapshot_files import (
    Snapshot,
    SnapshotError,
    SnapshotId,
    SnapshotWriter,
    decode_snapshot,
    delete_snapshot,
    encode_snapshot,
    list_snapshots,
    read_snapshot,
    remove_leftovers,
)
from barnabas.node.raft.voters import parse_dynamic_voters

VOTERS = parse_dynamic_voters("1@localhost:9093:JEXY6aqzQY-32P5TStzaFg", "CONTROLLER")
VALUES = [bytes([number]) * number for number in range(1, 60)]


def encoded(values: list[bytes]) -> bytes:
    return b"".join(
        encode_snapshot(
            values, now_ms=50, epoch=3, last_timestamp_ms=40, kraft_version=1, voters=VOTERS
        )
    )


def test_round_trip() -> None:
    assert decode_snapshot(encoded(VALUES)) == Snapshot(VALUES, 40, 1, VOTERS)
    assert decode_snapshot(b"".join(encode_snapshot([], now_ms=1))) == Snapshot()


def test_values_are_spread_over_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_files, "BATCH_SIZE_BYTES_MAX", 100)
    assert len(list(encode_snapshot(VALUES, now_ms=1))) > 10
    assert decode_snapshot(encoded(VALUES)).values == VALUES


def test_every_cut_is_refused() -> None:
    data = encoded(VALUES[:5])
    for end in range(len(data)):
        with pytest.raises(SnapshotError):
            decode_snapshot(data[:end])


def test_a_flipped_bit_is_refused_wherever_a_crc_covers_it() -> None:
    data = encoded(VALUES[:5])
    for position in range(21, len(data), 7):
        damaged = bytearray(data)
        damaged[position] ^= 0x10
        try:
            assert decode_snapshot(damaged).values == VALUES[:5], "only what no CRC covers"
        except SnapshotError:
            continue


def test_records_after_the_footer_are_refused() -> None:
    with pytest.raises(SnapshotError, match="footer"):
        decode_snapshot(encoded(VALUES) * 2)


async def test_a_snapshot_appears_when_it_is_complete(tmp_path: Path) -> None:
    disk = LocalDisk()
    snapshot_id = SnapshotId(7, 2)
    writer = SnapshotWriter(disk, str(tmp_path), snapshot_id)
    for batch in encode_snapshot(VALUES, now_ms=1):
        assert list_snapshots(disk, str(tmp_path)) == []
        writer.append(batch)
    size = await writer.freeze()
    assert list_snapshots(disk, str(tmp_path)) == [snapshot_id]
    assert (tmp_path / "00000000000000000007-0000000002.checkpoint").stat().st_size == size
    assert read_snapshot(disk, str(tmp_path), snapshot_id).values == VALUES
    delete_snapshot(disk, str(tmp_path), snapshot_id)
    assert disk.list(str(tmp_path)) == []
    disk.close()


def test_leftovers_are_removed_and_others_left_alone(tmp_path: Path) -> None:
    disk = LocalDisk()
    stem = "00000000000000000007-0000000002"
    for name in (f"{stem}.checkpoint", f"{stem}.checkpoint.part", f"{stem}.checkpoint.deleted"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "quorum-state").write_bytes(b"")
    SnapshotWriter(disk, str(tmp_path), SnapshotId(8, 2)).abandon()
    remove_leftovers(disk, str(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"{stem}.checkpoint",
        "quorum-state",
    ]
    assert list_snapshots(disk, str(tmp_path / "nowhere")) == []
    disk.close()
