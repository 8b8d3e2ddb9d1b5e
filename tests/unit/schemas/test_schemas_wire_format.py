"""The wire format: ids and GUIDs before data and in headers, paths of Protobuf messages."""

from uuid import UUID

import pytest

from barnabas.schemas.wire_format import (
    decode_indexes,
    encode_indexes,
    prefix_of,
    schema_id_of,
    taken_apart,
)

GUID = UUID("01020304-0506-0708-090a-0b0c0d0e0f10")
WITH_GUID = b"\1" + GUID.bytes


def test_an_id_before_data() -> None:
    assert prefix_of(7) == b"\0\0\0\0\7"
    assert schema_id_of(prefix_of(2**32 - 1) + b"x") == 2**32 - 1
    assert schema_id_of(b"\0\0\0\0") is schema_id_of(b"\1\0\0\0\7") is None


@pytest.mark.parametrize(
    ("data", "headers", "expected"),
    [
        (b"\0\0\0\0\7x", (), (7, b"x")),
        (b"\0\0\0\0\7x", [("other", b"y")], (7, b"x")),
        (WITH_GUID + b"x", (), (GUID, b"x")),
        (b"x", [("__value_schema_id", WITH_GUID)], (GUID, b"x")),
        (b"x", [("__value_schema_id", b"?"), ("__value_schema_id", b"\0\0\0\0\7")], (7, b"x")),
        # Of Protobuf the header has the path of the message too.
        (b"x", [("__value_schema_id", WITH_GUID + b"\2\2")], (GUID, b"\2\2x")),
    ],
)
def test_what_a_value_names(data, headers, expected) -> None:
    assert taken_apart(data, headers, is_key=False) == expected


@pytest.mark.parametrize(
    ("data", "headers"),
    [
        (b"", ()),
        (b"\0\0\0\0", ()),
        (b"\2\0\0\0\7x", ()),
        (WITH_GUID[:-1], ()),
        (b"x", [("__key_schema_id", WITH_GUID)]),
        (b"\0\0\0\0\7x", [("__value_schema_id", b"")]),
    ],
)
def test_a_value_that_names_nothing(data, headers) -> None:
    with pytest.raises(ValueError, match="Unknown magic byte!"):
        taken_apart(data, headers, is_key=False)


@pytest.mark.parametrize(
    ("indexes", "data"), [([0], b"\0"), ([1], b"\2\2"), ([0, 2], b"\4\0\4"), ([64], b"\2\x80\1")]
)
def test_paths_of_messages(indexes, data) -> None:
    assert encode_indexes(indexes) == data
    assert decode_indexes(data + b"x") == (indexes, len(data))


@pytest.mark.parametrize("data", [b"\x82\1", b"\1", b"\xff\xff\xff\xff\xff\1"])
def test_paths_that_are_none(data) -> None:
    with pytest.raises(ValueError, match="too long"):
        decode_indexes(data)
