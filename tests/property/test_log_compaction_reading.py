"""What compaction reads by columns, and what it leaves unread, against the plain way to do it."""

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.base.disk import Disk
from barnabas.node.log.compaction.cleaner import Cleaner, read_chunks
from barnabas.node.log.compaction.job import CleanJob, Source
from barnabas.node.log.compaction.offset_map import OffsetMap, map_bytes
from barnabas.node.log.compaction.retention import BatchFilter, TransactionTracker
from barnabas.node.log.compaction.rewrite import keep_records
from barnabas.node.log.compaction.scan import decompress_batch, scan_records
from barnabas.protocol.records.batch import (
    BatchHeader,
    Codec,
    TimestampType,
    check_crc,
    iterate_headers,
    read_header,
)
from barnabas.protocol.records.records import Record, decode_records, encode_batch
from sim.fake_disk import FakeDisk
from support.effort import examples

BASE_OFFSET = 1 << 33
TIMESTAMP = 1_700_000_000_000

stretches = st.tuples(
    st.sampled_from([1, 1, 2, 5, 6, 7, 30, 64, 130, 200]),  # records
    st.sampled_from([-1, 0, 1, 12, 12, 31, 63, 64, 100]),  # bytes of a key
    st.sampled_from([-1, 0, 5, 5, 40, 52, 60, 200, 9000]),  # bytes of a value
    st.sampled_from([0, 1, 3, 40, -1, -70, 9000]),  # ms from one to the next
    st.sampled_from([1, 1, 1, 2, 63, 9000]),  # offsets from one to the next
    st.integers(0, 2**32),
)


def records_of(shapes: Sequence[tuple[int, int, int, int, int, int]]) -> list[Record]:
    """Stretches of records of one layout, disturbed here and there."""
    records = []
    offset, timestamp = BASE_OFFSET, TIMESTAMP
    for count, key_size, value_size, step_ms, step, seed in shapes:
        for number in range(count):
            is_odd = (seed >> number % 32) % 64 == 63
            key = (b"%d" % (number * seed % 97)).ljust(key_size, b"k")[:key_size]
            value = bytes(value_size + is_odd) if value_size >= 0 else None
            headers: list[tuple[str, bytes | None]] = [("h", b"v")] if is_odd and seed % 2 else []
            if is_odd and seed % 3 == 0:
                value = None
            records.append(
                Record(offset, timestamp, key if key_size >= 0 else None, value, headers)
            )
            offset, timestamp = offset + step, timestamp + step_ms
    return records


@settings(max_examples=examples(23), deadline=None)
@given(
    st.lists(stretches, min_size=1, max_size=4),
    st.sampled_from([Codec.NONE, Codec.NONE, Codec.LZ4]),
    st.sampled_from(TimestampType),
    st.integers(0, 2**64),
    st.none() | st.just(TIMESTAMP + 1_000_000),
)
def test_what_is_read_and_kept(
    shapes: list[tuple[int, int, int, int, int, int]],
    codec: Codec,
    timestamp_type: TimestampType,
    choice: int,
    horizon_ms: int | None,
) -> None:
    batch = encode_batch(
        records_of(shapes), base_offset=BASE_OFFSET, codec=codec, timestamp_type=timestamp_type
    )
    buffer = b"before" + bytes(batch) + b"\x80after"
    header = read_header(batch)
    records = decode_records(batch)
    scan = scan_records(*decompress_batch(buffer, 6, header), header.record_count)
    assert scan.keys == [record.key for record in records]
    assert [BASE_OFFSET + delta for delta in scan.deltas] == [record.offset for record in records]
    assert scan.tombstones == [at for at, record in enumerate(records) if record.value is None]
    assert scan.is_keyless == (None in scan.keys)
    assert scan.key_size_max == max(len(key or b"") for key in scan.keys)
    for mask in (choice, choice | choice >> 7, ~choice, -1):
        kept = [index for index in range(len(records)) if mask >> index % 64 & 1]
        if not kept:
            continue
        written = keep_records(header, scan, kept, horizon_ms)
        new = read_header(written)
        assert check_crc(written, 0, new)
        wanted = [records[index] for index in kept]
        assert decode_records(written) == wanted
        assert new.max_timestamp == max(record.timestamp for record in wanted)
        assert (new.base_offset, new.last_offset) == (header.base_offset, header.last_offset)


batches = st.tuples(
    st.sampled_from([1, 1, 3, 8, 90]),  # records
    st.integers(0, 2**32),
    st.sampled_from([10, 10, 400, 3000]),  # bytes of a value
    st.sampled_from([Codec.NONE, Codec.NONE, Codec.NONE, Codec.LZ4]),
    st.sampled_from([-1, -1, -1, 7]),  # a producer
    st.booleans(),  # transactional
)


def log_of(shapes: Sequence[tuple[int, int, int, Codec, int, bool]], keys: int) -> bytes:
    """Batches of keyed records."""
    data = bytearray()
    offset = 0
    for count, seed, value_size, codec, producer_id, is_transactional in shapes:
        records = []
        for number in range(count):
            chosen = (seed + number * number) % keys
            key = (
                b"key-%d" % chosen if chosen % 5 else b"a key of more than thirty bytes: %d" % keys
            )
            value = None if seed % 11 == number else bytes([number]) * value_size
            records.append(Record(-1, TIMESTAMP + number, key, value))
        data += encode_batch(
            records,
            base_offset=offset,
            codec=codec,
            producer_id=producer_id,
            producer_epoch=min(producer_id, 0),
            base_sequence=-1 if producer_id < 0 else offset,
            is_transactional=is_transactional and producer_id >= 0,
        )
        offset += count + seed % 3
    return bytes(data)


@settings(max_examples=examples(23), deadline=None)
@given(
    st.lists(batches, min_size=1, max_size=20),
    st.sampled_from([2, 9, 40, 1000]),
    st.sampled_from([0, 0, 5, 30]),
    st.sampled_from([1, 10, 1000]),
    st.sampled_from([300, 4096, 65536]),
)
def test_what_is_left_unread(
    shapes: list[tuple[int, int, int, Codec, int, bool]],
    keys: int,
    start_offset: int,
    keys_max: int,
    buffer_bytes: int,
) -> None:
    """A round leaves what asking the map for each key of each batch leaves."""
    data = log_of(shapes, keys)
    end_offset = 1000 + max(header.next_offset for _, header in iterate_headers(data))
    disk = FakeDisk()
    disk.make_dirs("/log")
    disk.open("/log/00000000000000000000.log", create=True).append((data,))
    sources = [Source(0, len(data))]
    job = CleanJob(
        directory="/log",
        start_offset=start_offset,
        end_offset=end_offset,
        sources=sources,
        producers={},
        aborted=[],
        now_ms=TIMESTAMP,
        delete_retention_ms=1000,
        index_interval_bytes=100,
        map_bytes_max=map_bytes(keys_max),
        map_load_factor=1.0,
        io_buffer_bytes=buffer_bytes,
        bytes_per_second_max=float("inf"),
    )
    wanted = _clean_plainly(data, job)
    cleaner = Cleaner(disk, job)
    for _ in cleaner.build_map():
        pass
    for _ in cleaner.clean(sources):
        pass
    assert _content(disk, data) == wanted


def _content(disk: Disk, data: bytes) -> bytes:
    path = "/log/00000000000000000000.log.cleaned"
    return disk.read(path) if disk.exists(path) else data


def _clean_plainly(data: bytes, job: CleanJob) -> bytes:
    """The same by a filter that knows nothing but the map."""
    offset_map = OffsetMap(job.map_bytes_max, job.map_load_factor)
    headers = list(iterate_headers(data))
    records = [
        record
        for position, _ in headers
        for record in decode_records(data, position)
        if record.offset >= job.start_offset
    ]
    offset_map.latest_offset = job.end_offset - 1
    for record in records:
        assert record.key is not None
        if not offset_map.put_all([record.key], [record.offset], len(record.key)):
            # If a batch was taken as a whole, the gap starts after it.
            offset_map.latest_offset = record.offset - 1
            break
    plain = BatchFilter(
        offset_map,
        TransactionTracker(()),
        {},
        end_offset=job.end_offset,
        now_ms=job.now_ms,
        delete_retention_ms=job.delete_retention_ms,
    )
    left = bytearray()
    for position, header in headers:
        kept = plain.keep(header, data, position)
        if kept is not None:
            size = header.size_bytes
            left += data[position : position + size] if isinstance(kept, BatchHeader) else kept
    return bytes(left)


@settings(max_examples=examples(15), deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([10, 900, 5000, 40_000]), st.booleans()), max_size=15),
    st.sampled_from([61, 1000, 4096, 20_000, 100_000]),
)
def test_batches_are_met_in_order(shapes: list[tuple[int, bool]], buffer_bytes: int) -> None:
    """Each once, and with all its bytes unless it is superseded."""
    data = bytearray()
    superseded = set()
    for number, (size, is_superseded) in enumerate(shapes):
        value = bytes([number]) * size
        data += encode_batch([Record(key=b"k", value=value)], base_offset=number)
        if is_superseded:
            superseded.add(number)
    disk = FakeDisk()
    disk.make_dirs("/log")
    file = disk.open("/log/file", create=True)
    file.append((bytes(data),))
    met = []
    chunks = read_chunks(
        file, len(data), buffer_bytes, lambda header: header.base_offset in superseded
    )
    for chunk, found in chunks:
        for at, header in found:
            met.append(header.base_offset)
            if header.base_offset not in superseded:
                assert check_crc(chunk, at, header)
    assert met == list(range(len(shapes)))
