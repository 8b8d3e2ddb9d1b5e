"""A log directory that anything has happened to opens, and serves what it can.

Bytes of any file are changed, cut off or added, files are removed. After a crash (when the whole
log is scanned) what is read must be batches that were written, in order; after a clean shutdown
damage may be met while reading, and is an error code then. New appends always work.
"""

from collections.abc import Callable

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas.base.disk import FileRange
from barnabas.log.appending import AppendOrigin
from barnabas.log.config import LogConfig
from barnabas.log.dump import dump_path, render
from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.records.batch import check_crc, iterate_headers
from barnabas.protocol.records.control import encode_end_txn
from barnabas.protocol.records.records import decode_records
from support.logs import NOW_MS, LogBench, make_batch

RECORDS = 42


def written() -> LogBench:
    """A log of several segments, with plain, idempotent and transactional data."""
    bench = LogBench(config=LogConfig(segment_bytes=700, index_interval_bytes=100))
    for number in range(12):
        bench.append(
            make_batch(
                *(f"{number}-{index}" for index in range(3)),
                timestamps=[NOW_MS - 100 + number + index for index in range(3)],
                producer=(5, 0, 3 * (number // 2)) if number % 2 else (-1, -1, -1),
                transactional=bool(number % 2),
            ),
            epoch=number // 4,
        )
        if number % 2:
            marker = encode_end_txn(
                is_commit=number % 4 == 1, coordinator_epoch=0, producer_id=5, producer_epoch=0,
                timestamp_ms=NOW_MS,
            )  # fmt: skip
            bench.log.append_as_leader(
                marker, leader_epoch=2, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR
            )
    assert bench.log.log_end_offset == RECORDS
    bench.log.close()
    return bench


Damage = Callable[[LogBench], None]


@st.composite
def damages(draw: st.DrawFn) -> Damage:
    """Something that happens to one file, named by its place in the directory."""
    place = draw(st.integers(0, 100))
    at = draw(st.integers(0, 2000))
    data = draw(st.one_of(st.binary(min_size=1, max_size=8), st.just(bytes(64))))
    how = draw(st.sampled_from(["change", "cut", "add", "remove"]))

    def damage(bench: LogBench) -> None:
        names = bench.names()
        path = bench.path(names[place % len(names)])
        if how == "remove":
            bench.disk.remove(path)
            return
        content = bench.disk.inode(path).data
        start = at % (len(content) + 1)
        if how == "change":
            content[start : start + len(data)] = data
        elif how == "cut":
            del content[start:]
        else:
            content += data

    return damage


def read_all(bench: LogBench) -> tuple[list[tuple[int, str]], bool]:
    """What can be read: (offset, value) in order, and whether damage was met."""
    log = bench.log
    found: list[tuple[int, str]] = []
    is_damaged = False
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        result = log.read(offset, 400, max_offset=log.log_end_offset)
        if result.error:
            assert result.error is ErrorCode.CORRUPT_MESSAGE
            is_damaged = True
            offset += 1
            continue
        if result.next_offset == offset:
            break
        data = b"".join(
            part.read() if isinstance(part, FileRange) else bytes(part) for part in result.parts
        )
        try:
            for at, header in iterate_headers(data):
                if not check_crc(data, at, header):
                    is_damaged = True
                elif not header.is_control:
                    found += [
                        (record.offset, (record.value or b"").decode())
                        for record in decode_records(data, at)
                    ]
        except DecodeError:
            is_damaged = True
        offset = max(offset + 1, result.next_offset)
    return found, is_damaged


def read_intact() -> set[str]:
    bench = written()
    bench.reopen(is_clean=True)
    return {value for _, value in read_all(bench)[0]}


EXPECTED = read_intact()


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(damages(), min_size=1, max_size=3), st.booleans())
def test_any_damage(happened: list[Damage], is_clean: bool) -> None:
    bench = written()
    for damage in happened:
        damage(bench)
    for entry in dump_path(bench.disk, bench.log.directory, records=True):
        assert render(entry)
    bench.reopen(is_clean=is_clean, recovery_point=0)
    log = bench.log
    found, is_damaged = read_all(bench)
    # Offset and epoch of a batch lie outside its CRC, so a changed offset can pass for a gap.
    assert all(value in EXPECTED for _, value in found)
    assert is_clean or found == sorted(found)
    assert is_clean or not is_damaged
    for timestamp in (0, NOW_MS - 95, NOW_MS):
        log.offset_for_timestamp(timestamp, log.log_end_offset)
    log.max_timestamp_offset(log.log_end_offset)
    log.high_watermark = log.log_end_offset
    assert log.last_stable_offset <= log.log_end_offset
    log.apply_retention(NOW_MS)
    end = log.log_end_offset
    result = bench.append(make_batch("after"), epoch=9)
    assert (result.error, result.first_offset) == (ErrorCode.NONE, end)
    log.tail.clear()
    last = log.read(end, 1000, max_offset=end + 1)
    log.close()
    bench.reopen(is_clean=True)
    if not is_clean:
        assert last.next_offset == end + 1
        assert bench.log.log_end_offset == end + 1
