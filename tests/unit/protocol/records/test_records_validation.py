"""The structural check of a batch's records accepts and refuses the same in its three gears."""

from collections.abc import Callable

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records import walk
from barnabas.protocol.records.batch import HEADER, Codec, read_header, set_crc
from barnabas.protocol.records.compression import compress
from barnabas.protocol.records.records import (
    Record,
    decode_records,
    encode_batch,
    find_invalid_record,
    validate_records,
)
from barnabas.protocol.records.structure import StructureCheck
from barnabas.protocol.records.walk import (
    BadRecordError,
    CutOffError,
    MissingKeyError,
    Walk,
    walk_records,
)
from support.effort import others_slow

COUNTS = [1, 2, 5, 6, 7, 8, 63, 64, 65, 66, 72, 200, 8191, 8192, 8193, 8210]


def varint(value: int) -> bytes:
    raw = (value << 1) ^ (value >> 63)
    out = bytearray()
    while raw >= 0x80:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    return bytes(out) + bytes([raw])


def record_bytes(
    delta: int,
    *,
    timestamp: bytes = b"\x00",
    key: bytes = b"\x01",
    value: bytes = b"\x06abc",
    headers: bytes = b"\x00",
    length: bytes | None = None,
) -> bytes:
    """One record from its encoded parts; the length is right unless given."""
    body = b"\x00" + timestamp + varint(delta) + key + value + headers
    return (varint(len(body)) if length is None else length) + body


def sized(data: bytes) -> bytes:
    return varint(len(data)) + data


# Layouts of record `n` that are well-formed, so that each gear and each change between gears
# is walked through. Uniform ones run in columns, varied ones follow a shape.
LAYOUTS: dict[str, Callable[[int], bytes]] = {
    "tiny": lambda n: record_bytes(n, value=b"\x00"),
    "null value": lambda n: record_bytes(n, value=b"\x01"),
    "uniform": lambda n: record_bytes(n, value=sized(bytes(100))),
    "uniform with key": lambda n: record_bytes(n, key=sized(b"key45678"), value=sized(bytes(100))),
    "uniform, empty key": lambda n: record_bytes(n, key=b"\x00", value=sized(bytes(90))),
    "value of zeros, one byte": lambda n: record_bytes(n, key=sized(bytes(60)), value=sized(b"v")),
    "two-byte timestamps": lambda n: record_bytes(n, timestamp=varint(100 + n % 8000)),
    "timestamps that go back": lambda n: record_bytes(n, timestamp=varint(-(n % 64))),
    "timestamps grow": lambda n: record_bytes(n, timestamp=varint(n * n)),
    "long timestamps": lambda n: record_bytes(n, timestamp=varint(2**40 + n)),
    "varied value": lambda n: record_bytes(n, value=sized(bytes(n * 37 % 190))),
    "varied key and value": lambda n: record_bytes(
        n, key=sized(bytes(n * 7 % 90)), value=sized(bytes(n * 37 % 190))
    ),
    "mixed null": lambda n: record_bytes(
        n, key=b"\x01" if n % 3 else b"\x02k", value=b"\x01" if n % 5 == 0 else b"\x02v"
    ),
    "large": lambda n: record_bytes(n, value=sized(bytes(9000 if n % 64 == 3 else 10))),
    "headers": lambda n: record_bytes(n, headers=varint(2) + b"\x02a\x02b" + b"\x02c\x01"),
    "some headers": lambda n: record_bytes(
        n, headers=b"\x02" + sized(b"name") + sized(bytes(n % 100)) if n % 4 == 0 else b"\x00"
    ),
    "header that looks like none": lambda n: record_bytes(n, headers=b"\x02\x02a\x02\x00"),
    "overlong value length": lambda n: record_bytes(n, value=b"\x86\x80\x00abc"),
    "overlong delta": lambda n: _overlong_delta(n),
    "odd negative lengths": lambda n: record_bytes(n, key=b"\x03", value=b"\x05"),
}


def _overlong_delta(n: int) -> bytes:
    short = varint(n)
    delta = short[:-1] + bytes([short[-1] | 0x80, 0]) if len(short) < 5 else short
    body = b"\x00\x00" + delta + b"\x01" + sized(bytes(90)) + b"\x00"
    return varint(len(body)) + body


@pytest.mark.parametrize("name", LAYOUTS)
def test_well_formed_layouts_pass(name: str) -> None:
    layout = LAYOUTS[name]
    records = [layout(n) for n in range(max(COUNTS))]
    for count in COUNTS:
        walk_records(b"".join(records[:count]), count, keys_required=False)


@pytest.mark.parametrize("name", LAYOUTS)
def test_count_must_agree(name: str) -> None:
    for count in (3, 12, 70, 90):
        data = b"".join(LAYOUTS[name](n) for n in range(count))
        for wrong in (count - 1, count + 1):
            with pytest.raises(BadRecordError):
                walk_records(data, wrong, keys_required=False)


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_cut_is_refused(name: str) -> None:
    data = b"".join(LAYOUTS[name](n) for n in range(12))
    for size in range(len(data)):
        with pytest.raises(BadRecordError):
            walk_records(data[:size], 12, keys_required=False)


# One bad record among good ones: what is wrong with it, and the bytes.
BAD: dict[str, Callable[[int], bytes]] = {
    "delta repeats": lambda n: record_bytes(n - 1, value=sized(bytes(100))),
    "delta skips": lambda n: record_bytes(n + 1, value=sized(bytes(100))),
    "delta is negative": lambda n: record_bytes(-n - 1, value=sized(bytes(100))),
    "value overruns": lambda n: record_bytes(n, value=varint(101) + bytes(100)),
    "value falls short": lambda n: record_bytes(n, value=varint(99) + bytes(100)),
    "value length is huge": lambda n: record_bytes(n, value=varint(2**31 - 1) + bytes(98)),
    "null value has bytes": lambda n: record_bytes(n, value=b"\x01" + bytes(101)),
    "key overruns": lambda n: record_bytes(n, key=varint(63) + b"k", value=sized(bytes(4))),
    "key swallows the value": lambda n: record_bytes(n, key=varint(102), value=sized(bytes(98))),
    "record is longer than said": lambda n: record_bytes(
        n, value=sized(bytes(100)), length=varint(106)
    ),
    "record length is negative": lambda n: record_bytes(n, length=varint(-5)),
    "record length is zero": lambda n: record_bytes(n, length=b"\x00"),
    "record length is huge": lambda n: record_bytes(n, length=varint(2**31 - 1)),
    "length varint never ends": lambda n: record_bytes(n, length=b"\xff" * 6),
    "timestamp varint never ends": lambda n: record_bytes(n, timestamp=b"\xff" * 11),
    "negative header count": lambda n: record_bytes(n, headers=b"\x01"),
    "headers that are not there": lambda n: record_bytes(n, headers=b"\x02"),
    "huge header count": lambda n: record_bytes(n, headers=varint(2**31 - 1)),
    "header without a name": lambda n: record_bytes(n, headers=b"\x02\x01\x02v"),
    "header name overruns": lambda n: record_bytes(n, headers=b"\x02\x40a\x00"),
    "header value overruns": lambda n: record_bytes(n, headers=b"\x02\x02a\x40v"),
    "header value overruns far": lambda n: record_bytes(n, headers=b"\x02\x02a\xfe\xff\x01v"),
    "bytes after the headers": lambda n: record_bytes(n, headers=b"\x00\x00"),
}


@pytest.mark.parametrize("place", [0, 1, 5, 20, 63, 64, 65, 80, 99])
@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("around", ["uniform", "varied key and value", "some headers"])
def test_one_bad_record_is_found(name: str, place: int, around: str) -> None:
    good = LAYOUTS[around]
    data = b"".join(BAD[name](n) if n == place else good(n) for n in range(100))
    with pytest.raises(BadRecordError) as caught:
        walk_records(data, 100, keys_required=False)
    assert caught.value.index >= place


@pytest.mark.parametrize("name", BAD)
def test_bad_records_all_alike_are_not_taken_for_a_run(name: str) -> None:
    first = b"".join(LAYOUTS["uniform"](n) for n in range(3))
    for data in (first + b"".join(BAD[name](n) for n in range(3, 200)),):
        with pytest.raises(BadRecordError):
            walk_records(data, 200, keys_required=False)


FIRSTS = [60, 8185, 16_375, 2**20 - 8, 2**27 - 8]
"""Indexes shortly before deltas change their width, or their third byte and more."""


@pytest.mark.parametrize("first", others_slow(FIRSTS, 2))
@pytest.mark.parametrize("name", LAYOUTS)
def test_every_flipped_bit_is_judged_as_the_slow_gear_does(
    name: str, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fast gears only ever agree with the slow one."""
    data = b"".join(LAYOUTS[name](n) for n in range(first, first + 18))
    assert _outcome(data, first)
    fast = _outcomes_of_flips(data, first)
    monkeypatch.setattr("barnabas.protocol.records.walk._shape_of", lambda *_: None)
    assert _outcomes_of_flips(data, first) == fast


def _outcomes_of_flips(data: bytes, first: int) -> dict[tuple[int, int], bool]:
    """By position and bit."""
    outcomes = {}
    flipped = bytearray(data)
    for position in range(min(len(data), 700)):
        for bit in (1, 0x80):
            flipped[position] ^= bit
            outcomes[position, bit] = _outcome(bytes(flipped), first)
            flipped[position] ^= bit
    return outcomes


def _outcome(data: bytes, first: int) -> bool:
    try:
        return Walk(keys_required=False).walk(data, 0, first, first + 18) == len(data)
    except BadRecordError:
        return False


@pytest.mark.parametrize("first", FIRSTS)
@pytest.mark.parametrize("name", LAYOUTS)
def test_a_cut_is_where_the_last_whole_record_ends(name: str, first: int) -> None:
    records = [LAYOUTS[name](first + n) for n in range(14)]
    data = b"".join(records)
    whole = position = 0
    for size in range(len(data)):
        if size >= position + len(records[whole]):
            position += len(records[whole])
            whole += 1
        assert _cut_off(data[:size], first) == (first + whole, position)


def _cut_off(data: bytes, first: int) -> tuple[int, int] | None:
    """Index and position of the record that is not whole."""
    try:
        Walk(keys_required=False).walk(data, 0, first, first + 14)
    except CutOffError as error:
        return error.index, error.position
    return None


def walk_at_once(data: bytes, count: int) -> None:
    walk_records(data, count, keys_required=False)


def walk_in_pieces(data: bytes, count: int) -> None:
    check = StructureCheck(count, keys_required=False, size_max=2**20)
    for _ in check.feed(data):
        pass
    check.finish()


@pytest.mark.parametrize("walked", [walk_at_once, walk_in_pieces])
@pytest.mark.parametrize(
    "name", ["uniform", "uniform with key", "varied value", "two-byte timestamps", "mixed null"]
)
def test_records_of_large_batches_are_walked_as_fast_as_those_of_small_ones(
    name: str, walked: Callable[[bytes, int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slow gear takes several times as long as the others."""
    slow = 0
    verify = walk._verify_record

    def counted(data: bytes, position: int, index: int, keys_required: bool) -> int:
        nonlocal slow
        slow += 1
        return verify(data, position, index, keys_required)

    monkeypatch.setattr(walk, "_verify_record", counted)
    shares = []
    for count in (8_000, 40_000):
        slow = 0
        walked(b"".join(LAYOUTS[name](n) for n in range(count)), count)
        shares.append(slow / count)
    small, large = shares
    assert large < small * 1.2 + 0.01


@pytest.mark.parametrize("place", [0, 1, 7, 64, 70, 99])
@pytest.mark.parametrize("around", ["uniform with key", "varied key and value"])
def test_keys_required(place: int, around: str) -> None:
    good = LAYOUTS[around]
    data = b"".join(good(n) for n in range(100))
    walk_records(data, 100, keys_required=True)
    data = b"".join(LAYOUTS["uniform"](n) if n == place else good(n) for n in range(100))
    walk_records(data, 100, keys_required=False)
    with pytest.raises(MissingKeyError) as caught:
        walk_records(data, 100, keys_required=True)
    assert caught.value.index == place


def test_keys_required_of_a_record_with_another_shape() -> None:
    """Once taken for a record without key: key `\\x01`, after a record with a longer length."""
    records = [Record(key=b"", value=bytes(80)), Record(key=b"\x01", value=None)]
    data = encode_batch(records)
    assert _validate(data, keys_required=True) is ErrorCode.NONE


def _validate(data: bytes | bytearray, keys_required: bool = False) -> ErrorCode:
    return validate_records(data, 0, read_header(data), keys_required=keys_required)


@pytest.mark.parametrize("codec", Codec)
def test_validation_of_whole_batches(codec: Codec) -> None:
    records = [Record(timestamp=n, key=b"k", value=bytes(100)) for n in range(150)]
    data = encode_batch(records, codec=codec)
    assert _validate(data, keys_required=True) is ErrorCode.NONE
    assert find_invalid_record(data, 0, read_header(data), keys_required=True) is None
    records[77].key = None
    data = encode_batch(records, codec=codec)
    assert _validate(data) is ErrorCode.NONE
    assert _validate(data, keys_required=True) is ErrorCode.INVALID_RECORD
    found = find_invalid_record(data, 0, read_header(data), keys_required=True)
    assert found is not None
    assert found[0] == 77


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("count", [-1, 0, 2, 4, 2**31 - 1])
def test_header_count_that_is_wrong(codec: Codec, count: int) -> None:
    data = encode_batch([Record(value=b"v")] * 3, codec=codec)
    wrong = bytearray(data)
    wrong[57:61] = count.to_bytes(4, "big", signed=True)
    assert _validate(wrong) is ErrorCode.INVALID_RECORD
    wrong[23:27] = (max(count, 1) - 1).to_bytes(4, "big")
    assert _validate(wrong) is ErrorCode.INVALID_RECORD


def test_offsets_with_gaps_are_for_compaction_only() -> None:
    data = encode_batch([Record(offset=0, value=b"a"), Record(offset=2, value=b"b")])
    assert _validate(data) is ErrorCode.INVALID_RECORD
    assert [record.offset for record in decode_records(data)] == [0, 2]
    data = encode_batch([Record(offset=1, value=b"a"), Record(offset=0, value=b"b")][:1])
    assert _validate(data) is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec is not Codec.NONE])
def test_records_that_do_not_decompress(codec: Codec) -> None:
    data = encode_batch([Record(value=bytes(500))], codec=codec)
    data[61:] = b"\xff" * (len(data) - 61)
    assert _validate(data) is ErrorCode.CORRUPT_MESSAGE
    assert find_invalid_record(data, 0, read_header(data), keys_required=False) is None


def test_codec_that_does_not_exist() -> None:
    data = encode_batch([Record(value=bytes(500))])
    data[22] |= 7
    assert _validate(data) is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_bomb_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barnabas.protocol.records.records.DECOMPRESSED_SIZE_BYTES_MAX", 10_000)
    body = compress(Codec.ZSTD, record_bytes(0, value=sized(bytes(20_000))))
    data = bytearray(HEADER.size) + body
    HEADER.pack_into(data, 0, 0, len(data) - 12, 0, 2, 0, 4, 0, 0, 0, -1, -1, -1, 1)
    set_crc(data, 0)
    assert _validate(data) is ErrorCode.MESSAGE_TOO_LARGE


def test_a_compressed_megabyte_of_tiny_records_is_refused_unread() -> None:
    header = read_header(encode_batch([Record()]))._replace(
        attributes=Codec.ZSTD, record_count=1_000_001, last_offset_delta=1_000_000
    )
    assert validate_records(b"", 0, header, keys_required=False) is ErrorCode.INVALID_RECORD
