"""The frame of metadata records, and hostile bytes in it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.node.metadata.records import (
    RECORD_TYPES,
    MetadataRecord,
    decode_record,
    encode_record,
)
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.messages.metadata_records import PartitionRecord, TopicRecord


def test_the_type_numbers_are_those_of_the_messages() -> None:
    message: Any
    for number, message in RECORD_TYPES.items():
        assert message.SCHEMA.api_key == number


@pytest.mark.parametrize("number", sorted(RECORD_TYPES))
def test_every_type_survives_its_frame(number: int) -> None:
    message: Any = RECORD_TYPES[number]
    versions = message.SCHEMA.versions
    for version in range(versions.first, versions.last + 1):
        record = MetadataRecord(RECORD_TYPES[number](), version)
        assert decode_record(encode_record(record)) == record


@given(data=st.binary(max_size=200))
def test_any_bytes_are_a_record_or_a_decode_error(data: bytes) -> None:
    try:
        decode_record(data)
    except DecodeError:
        return


@given(
    name=st.text(max_size=20),
    replicas=st.lists(st.integers(0, 2**31 - 1), max_size=5),
    cut=st.integers(0, 100),
)
def test_no_cut_goes_unnoticed(name: str, replicas: list[int], cut: int) -> None:
    for message, version in (
        (TopicRecord(name=name), 0),
        (PartitionRecord(replicas=replicas, isr=replicas), 2),
    ):
        data = encode_record(MetadataRecord(message, version))
        assert decode_record(data).message == message
        with pytest.raises(DecodeError):
            decode_record(data[: min(cut, len(data) - 1)])


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\x02\x02\x00", "frame version 2"),
        (b"\x01\x63\x00", "type 99"),
        (b"\x01\x02\x09", "version 9"),
    ],
)
def test_what_a_newer_version_wrote(data: bytes, words: str) -> None:
    with pytest.raises(DecodeError, match=words):
        decode_record(data)
