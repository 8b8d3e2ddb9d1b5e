"""Which schema a key or a value names."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.node.broker.schemas.wire_format import (
    KEY_HEADER,
    VALUE_HEADER,
    identities_of,
    scan_batch,
    schema_of,
)
from barnabas.protocol.records.batch import HEADER_SIZE_BYTES
from barnabas.protocol.records.records import Record, encode_batch
from barnabas.protocol.records.walk import BadRecordError

GUID = UUID(int=0x0123456789ABCDEF0123456789ABCDEF)
ID_7 = b"\0\0\0\0\x07"
GUID_1 = b"\x01" + GUID.bytes


@pytest.mark.parametrize(
    ("identity", "schema"),
    [
        (ID_7, 7),
        (b"\0\x7f\xff\xff\xff", 2**31 - 1),
        (b"\0\0\0\0\0", None),  # ids begin at 1
        (b"\0\xff\xff\xff\xff", None),
        (b"\x01\0\0\0\x07", None),
        (b"\0\0\0\x07", None),
        (b"", None),
        (b"\x02\0\0\0\x07", None),
        (GUID_1, GUID),
        (b"\0" + GUID.bytes, None),
    ],
)
def test_what_an_identity_holds(identity: bytes, schema: object) -> None:
    assert schema_of(identity) == schema


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (Record(), (None, None)),
        (Record(key=ID_7 + b"k", value=None), (ID_7, None)),
        (Record(key=b"", value=ID_7), (b"", ID_7)),
        (Record(value=b"text"), (None, b"")),
        (Record(value=GUID_1 + b"v"), (None, GUID_1)),
        (Record(value=GUID_1[:-1]), (None, b"")),
        (Record(value=b"text", headers=[(VALUE_HEADER, GUID_1)]), (None, GUID_1)),
        (Record(value=b"", headers=[(VALUE_HEADER, ID_7)]), (None, ID_7)),
        (Record(value=ID_7, headers=[(VALUE_HEADER, b"?")]), (None, b"")),  # a header comes first
        (Record(value=ID_7, headers=[(VALUE_HEADER, None)]), (None, ID_7)),
        (Record(value=b"v", headers=[(VALUE_HEADER, b"?"), (VALUE_HEADER, ID_7)]), (None, ID_7)),
        (Record(value=b"v", headers=[(KEY_HEADER, ID_7)]), (None, b"")),
        (Record(key=b"k", headers=[(KEY_HEADER, ID_7)]), (ID_7, None)),
        (Record(key=None, headers=[(KEY_HEADER, b"?")]), (None, None)),
    ],
)
def test_what_a_record_names(record: Record, expected: tuple[bytes | None, bytes | None]) -> None:
    assert identities_of(record) == expected


def body_of(records: list[Record]) -> bytes:
    return bytes(encode_batch(records)[HEADER_SIZE_BYTES:])


payloads = st.one_of(
    st.none(),
    st.binary(max_size=8),
    st.builds(
        lambda number, size: b"\0" + number.to_bytes(4, "big") + bytes(size),
        st.integers(1, 3),
        st.sampled_from([0, 1, 53, 54, 58, 59, 60, 120, 8186, 8187, 9000, 20000]),
    ),
)
headers = st.lists(
    st.tuples(
        st.sampled_from(["trace", "x" * 70, "trace", VALUE_HEADER]),
        st.one_of(st.none(), st.binary(max_size=90)),
    ),
    max_size=2,
)
batches = st.lists(
    st.builds(
        Record,
        timestamp=st.integers(0, 2**40),
        key=payloads,
        value=payloads,
        headers=headers,
    ),
    min_size=1,
    max_size=8,
)


@given(batches, st.booleans(), st.booleans())
def test_the_scan_finds_what_each_record_names(
    records: list[Record], keys: bool, values: bool
) -> None:
    found = scan_batch(body_of(records), len(records), keys=keys, values=values)
    beginnings = {
        "key": {record.key[:5] for record in records if record.key is not None} if keys else set(),
        "value": {record.value[:5] for record in records if record.value is not None}
        if values
        else set(),
    }
    names = {name for record in records for name, _ in record.headers}
    if VALUE_HEADER in names or any(
        each[:1] == b"\x01" for each in beginnings["key"] | beginnings["value"]
    ):
        assert found is None
    else:
        assert found == (beginnings["key"], beginnings["value"])


@pytest.mark.parametrize("count", [64, 129, 8193])
def test_long_batches(count: int) -> None:
    records = [Record(value=b"\0\0\0\0" + bytes([1 + index % 3])) for index in range(count)]
    found = scan_batch(body_of(records), count, keys=True, values=True)
    assert found == (set(), {b"\0\0\0\0\x01", b"\0\0\0\0\x02", b"\0\0\0\0\x03"})


@pytest.mark.parametrize(
    "record", [Record(value=GUID_1), Record(value=b"v", headers=[(VALUE_HEADER, ID_7)])]
)
def test_headers_and_guids_must_be_decoded(record: Record) -> None:
    records = [Record(value=ID_7), record]
    assert scan_batch(body_of(records), 2, keys=False, values=True) is None


@given(st.binary(max_size=60), st.integers(1, 5))
def test_nonsense_ends(data: bytes, count: int) -> None:
    try:
        scan_batch(data, count, keys=True, values=True)
    except (BadRecordError, IndexError):
        return
