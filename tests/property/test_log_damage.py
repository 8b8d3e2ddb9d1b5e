"""A log directory that anything has happened to opens, and serves what it can.

Bytes of any file are changed, cut off or added, files are removed. After a crash (when the whole
log is scanned) what is read must be batches that were written, in order; after a clean shutdown
damage may be met while reading, and is an error code then. New appends always work.

One damage, of the kinds that media know (a flipped bit, a page of zeros, a page that stands where
another should, a file that is cut off), moves no record to another offset: where its CRC, its
neighbours or a checkpoint tell, it is not given out, and a follower does not take it.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from barnabas.base.disk import FileRange
from barnabas.node.log.config import LogConfig
from barnabas.node.log.dump import dump_path, render
from barnabas.node.log.results import DeferredRead, ReadResult
from barnabas.node.log.validator import AppendOrigin
from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.records.batch import check_crc, iterate_headers
from barnabas.protocol.records.control import encode_end_txn
from barnabas.protocol.records.records import decode_records
from support.effort import examples
from support.logs import NOW_MS, LogBench, make_batch, read_records, read_values

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


@settings(max_examples=examples(24), deadline=None, suppress_health_check=[HealthCheck.too_slow])
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


# One damage

BATCHES = 30
BATCH_RECORDS = 4
END = BATCHES * BATCH_RECORDS
PAGE_BYTES = 256
"""Small beside a segment, as a page is."""


def numbered() -> LogBench:
    """A closed log of several segments in which each value is its offset."""
    bench = LogBench(
        config=LogConfig(segment_bytes=900, index_interval_bytes=200), tail_bytes_max=0
    )
    for first in range(0, END, BATCH_RECORDS):
        offsets = range(first, first + BATCH_RECORDS)
        bench.append(
            make_batch(*map(str, offsets), timestamps=[NOW_MS + offset for offset in offsets]),
            epoch=first // 50,
        )
    bench.close()
    return bench


class MediumDamage(NamedTuple):
    """What happens to one file, named by its place in the directory; numbers wrap around."""

    file: int
    how: str
    at: int
    source: int

    def happen(self, bench: LogBench) -> None:
        """Change the file; an empty one has nothing to lose."""
        names = [name for name in bench.names() if bench.disk.inode(bench.path(name)).data]
        data = bench.disk.inode(bench.path(names[self.file % len(names)])).data
        pages = -(-len(data) // PAGE_BYTES)
        start, other = self.at % pages * PAGE_BYTES, self.source % pages * PAGE_BYTES
        size = min(PAGE_BYTES, len(data) - max(start, other))
        match self.how:
            case "flip":
                bit = self.at % (len(data) * 8)
                data[bit // 8] ^= 1 << bit % 8
            case "zeros":
                data[start : start + size] = bytes(size)
            case "stale":
                data[start : start + size] = data[other : other + size]
            case "cut":
                del data[self.at % len(data) :]


medium_damages = st.builds(
    MediumDamage,
    st.integers(0, 200),
    st.sampled_from(["flip", "flip", "zeros", "stale", "cut"]),
    st.integers(0, 1 << 16),
    st.integers(0, 50),
)


def sound_records(data: bytes) -> Iterator[tuple[int, int]]:
    """(offset, what was written at it) of each batch whose CRC is right."""
    for at, header in iterate_headers(data):
        if check_crc(data, at, header):
            for record in decode_records(data, at):
                yield record.offset, int(record.value or b"")


def joined(result: ReadResult | DeferredRead) -> bytes:
    assert isinstance(result, ReadResult)
    return b"".join(
        part.read() if isinstance(part, FileRange) else bytes(part) for part in result.parts
    )


def check_look_ups(bench: LogBench, max_bytes: int) -> None:
    """Check that a read of each offset gives the record written there, or an error."""
    log = bench.log
    for offset in range(log.log_start_offset, log.log_end_offset):
        log.read_hints.clear()
        result = log.read(offset, max_bytes, max_offset=log.log_end_offset)
        assert result.error in (ErrorCode.NONE, ErrorCode.CORRUPT_MESSAGE)
        assert len(joined(result)) == result.size_bytes
        if max_bytes == 1:
            with contextlib.suppress(DecodeError):
                for found, written_at in sound_records(joined(result)):
                    assert found == written_at


def check_follower(bench: LogBench, max_bytes: int) -> None:
    """A follower comes as far as the damage, if there is any, and has only what was there."""
    log, replica = bench.log, LogBench(tail_bytes_max=0)
    replica.log.truncate_fully_and_start_at(log.log_start_offset)
    for _ in range(3 * BATCHES):
        offset = replica.log.log_end_offset
        if offset >= log.log_end_offset:
            break
        result = log.read(offset, max_bytes, max_offset=log.log_end_offset)
        if result.error:
            break
        taken = replica.log.append_as_follower(
            joined(result), leader_epoch=9, leader_high_watermark=log.log_end_offset
        )
        if taken.error or replica.log.log_end_offset == offset:
            break
    else:
        raise AssertionError("a follower fetches for ever")
    if replica.log.log_end_offset > log.log_end_offset:
        return  # by the last batch of all, which ends a range: the answer says so, and it goes back
    records = [(record.offset, int(record.value or b"")) for record in read_records(replica.log)]
    assert all(offset == written_at for offset, written_at in records)
    if log.gap_offset is None:  # what was cut off and reported
        assert len(records) == replica.log.log_end_offset - log.log_start_offset


@settings(max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(medium_damages, st.sampled_from([1, 150, 400, 5000]), st.integers(0, END))
@example(MediumDamage(192, "zeros", 0, 0), 1, END)
@example(MediumDamage(8, "flip", 14306, 0), 1, 0)  # of a batch's last offset delta
def test_damage_while_a_log_is_open_moves_no_record(
    damage: MediumDamage, max_bytes: int, cut_at: int
) -> None:
    bench = numbered()
    bench.reopen(is_clean=True, recovery_point=END)
    bench.log.high_watermark = END
    assert sorted(map(int, read_values(bench.log))) == list(range(END))
    damage.happen(bench)
    check_follower(bench, max_bytes)
    check_look_ups(bench, max_bytes)
    check_look_ups(bench, 1)
    for timestamp in range(NOW_MS, NOW_MS + END, 7):
        found = bench.log.offset_for_timestamp(timestamp, END)
        assert found is None or found.timestamp >= timestamp
        assert found is None or found.offset == found.timestamp - NOW_MS
    bench.log.max_timestamp_offset(END)
    bench.log.aborted_transactions(0, END)
    bench.log.apply_retention(NOW_MS)
    cut_at -= cut_at % BATCH_RECORDS
    bench.log.truncate_to(cut_at)
    assert bench.log.log_end_offset <= cut_at
    bench.fill("after")
    last = bench.log.read(bench.log.log_end_offset - 1, 1, max_offset=END + 1)
    # It may stand behind damage that nobody can pass who looks for it.
    assert last.size_bytes or last.error is ErrorCode.CORRUPT_MESSAGE
    assert not bench.offline
    bench.close()


@settings(max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(medium_damages, st.sampled_from([1, 150, 400, 5000]), st.booleans())
def test_damage_before_a_log_is_opened_moves_no_record(
    damage: MediumDamage, max_bytes: int, is_clean: bool
) -> None:
    bench = numbered()
    damage.happen(bench)
    bench.reopen(is_clean=is_clean, recovery_point=END)
    if bench.log.log_end_offset > END:
        # After a crash nothing tells a last batch that is ahead from one behind a gap.
        assert not is_clean
        return
    check_look_ups(bench, max_bytes)
    check_look_ups(bench, 1)
    check_follower(bench, max_bytes)
    bench.fill("after")
    assert not bench.offline
    bench.close()
