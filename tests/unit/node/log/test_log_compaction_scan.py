"""What is read of records: the quick way finds what the thorough one does."""

import pytest

from barnabas.node.log.compaction.runs import RUN_LENGTH_MIN
from barnabas.node.log.compaction.scan import Scan, _walk, scan_records, timestamp_delta
from barnabas.protocol.records.batch import HEADER_SIZE_BYTES, CorruptBatchError
from barnabas.protocol.records.records import Record, encode_batch


def records_of(count: int, key_size: int, value_size: int, step_ms: int = 0) -> bytes:
    records = [
        Record(
            timestamp=1000 + index * step_ms,
            key=(b"%d" % index).rjust(key_size, b"k")[-key_size:] if key_size else b"",
            value=bytes(value_size),
        )
        for index in range(count)
    ]
    return bytes(encode_batch(records)[HEADER_SIZE_BYTES:])


@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 200, 2000])
@pytest.mark.parametrize("value_size", [0, 40, 50, 51, 52, 53, 54, 55, 56, 57, 58, 200, 8180, 8190])
@pytest.mark.parametrize("key_size", [0, 1, 5, 63])
def test_records_of_one_size(count: int, key_size: int, value_size: int) -> None:
    if count * value_size > 2_000_000:
        count = 100
    data = records_of(count, key_size, value_size)
    scan = scan_records(data, 0, len(data), count)
    thorough = Scan(data, len(data))
    deltas: list[int] = []
    assert _walk(thorough, deltas, 0, 0, count) == len(data)
    assert scan.runs or count < RUN_LENGTH_MIN
    assert scan.starts == thorough.starts
    assert scan.keys == thorough.keys
    assert list(scan.deltas) == deltas == list(range(count))
    assert scan.tombstones == thorough.tombstones == []


def test_all_that_records_may_be() -> None:
    long_key = b"k" * 10_000
    batch = encode_batch(
        [
            Record(0, 5, b"a", b"1", [("h", None), ("", b"x" * 200)]),
            Record(7, 5 - (1 << 40), long_key, None),
            Record(70, 5 + (1 << 40), None, None),
            Record(70_000, 5, b"", b""),
        ]
    )
    data = bytes(batch[HEADER_SIZE_BYTES:])
    scan = scan_records(data, 0, len(data), 4)
    assert (scan.keys, list(scan.deltas)) == ([b"a", long_key, None, b""], [0, 7, 70, 70_000])
    assert list(scan.tombstones) == [1, 2]
    deltas = [timestamp_delta(data, start)[0] for start in scan.starts[:-1]]
    assert deltas == [0, -(1 << 40), 1 << 40, 0]


def test_what_is_no_record_is_refused() -> None:
    data = records_of(3, 4, 10, step_ms=100)
    for end in range(len(data)):
        with pytest.raises(CorruptBatchError):
            scan_records(data[:end], 0, end, 3)
    for count in (2, 4, -1):
        with pytest.raises(CorruptBatchError):
            scan_records(data, 0, len(data), count)
    for position in range(len(data)):
        for byte in (0x00, 0x01, 0x7F, 0x80, 0xFF):
            changed = data[:position] + bytes([byte]) + data[position + 1 :]
            _scan_or_refuse(changed)


def _scan_or_refuse(data: bytes) -> Scan | None:
    try:
        return scan_records(data, 0, len(data), 3)
    except CorruptBatchError:
        return None
