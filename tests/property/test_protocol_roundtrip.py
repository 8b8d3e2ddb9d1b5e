"""Every version of every message: there and back, cut, stretched, spoilt and inflated.

`make test` takes the last and the first version there and back, and cuts these. The bytes of every
version are compared by test_protocol_kio.py and test_protocol_kafka.py.
"""

import contextlib
import tracemalloc
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from protocol_values import all_messages, label, sample, struct_values, versions

from barnabas.protocol.codec import decode, decode_at, encode, encode_parts
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.schema import Message
from support.effort import examples, first_of

FUZZ_CLASSES = [cls for cls in all_messages() if cls.SCHEMA.listeners or not cls.SCHEMA.api_key]

common = settings(
    deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)


def ends(cls: type[Message]) -> list[int]:
    """The last version and, unless it is the only one, the first."""
    return list(dict.fromkeys((cls.SCHEMA.versions.last, cls.SCHEMA.versions.first)))


def versions_from_the_ends(cls: type[Message]) -> list[int]:
    """These, and in `make test-slow` all others."""
    return first_of(dict.fromkeys((*ends(cls), *versions(cls))), 2)


@pytest.mark.parametrize("cls", all_messages(), ids=label)
def test_there_and_back(cls: type[Message]) -> None:
    for version in versions_from_the_ends(cls):
        there_and_back(cls, version)


@settings(common, max_examples=examples(2))
@given(data=st.data())
def there_and_back(cls: Any, version: int, data: st.DataObject) -> None:
    message = data.draw(struct_values(cls, version))
    if cls.SCHEMA.flexible.covers(version):
        message.unknown_tags = data.draw(st.sampled_from([None, [(1000, b""), (2000, b"later")]]))
    encoded = encode(message, version)
    assert decode(cls, version, encoded) == message
    assert b"".join(encode_parts(message, version)) == encoded
    framed = memoryview(bytearray(b"before" + encoded + b"after"))
    assert decode_at(cls, version, framed, 6) == (message, 6 + len(encoded))


@pytest.mark.parametrize("cls", all_messages(), ids=label)
def test_every_cut_is_an_error(cls: type[Message]) -> None:
    for version in versions_from_the_ends(cls):
        message = sample(cls, version)
        encoded = encode(message, version)
        assert decode(cls, version, encoded) == message
        for end in range(len(encoded)):
            with pytest.raises(DecodeError):
                decode(cls, version, encoded[:end])
        with pytest.raises(DecodeError):
            decode(cls, version, encoded + b"\0")


@pytest.mark.parametrize("cls", all_messages(), ids=label)
def test_an_inflated_length_allocates_nothing(cls: type[Message]) -> None:
    """Wherever the bytes claim to be huge, decoding takes no more memory than they do."""
    for version in first_of(ends(cls), 1):
        assert_nothing_is_allocated(cls, version)


def assert_nothing_is_allocated(cls: type[Message], version: int) -> None:
    encoded = encode(sample(cls, version), version)
    cases = [
        encoded[:position] + claim + encoded[position + len(claim) :]
        for claim in (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x07", b"\x7f\xff")
        for position in range(len(encoded))
    ]
    decode(cls, version, encoded)
    tracemalloc.start()
    try:
        for case in cases:
            # Other threads of the process allocate too, but hardly at each of three times.
            limit = 100_000 + 200 * len(case)
            assert any(_traced_peak(cls, version, case) < limit for _ in range(3)), case
    finally:
        tracemalloc.stop()


def _traced_peak(cls: type[Message], version: int, data: bytes) -> int:
    tracemalloc.reset_peak()
    before, _ = tracemalloc.get_traced_memory()
    with contextlib.suppress(DecodeError):
        decode(cls, version, data)
    return tracemalloc.get_traced_memory()[1] - before


@pytest.mark.parametrize("cls", FUZZ_CLASSES, ids=label)
@settings(common, max_examples=examples(8))
@given(data=st.data())
def test_spoilt_bytes_raise_nothing_else(cls: type[Message], data: st.DataObject) -> None:
    version = data.draw(st.integers(cls.SCHEMA.versions.first, cls.SCHEMA.versions.last))
    spoilt = bytearray(encode(sample(cls, version), version))
    for _ in range(data.draw(st.integers(0, 4))):
        position = data.draw(st.integers(0, len(spoilt)))
        kept = data.draw(st.integers(0, 4))
        spoilt[position : position + kept] = data.draw(st.binary(max_size=6))
    try:
        message, end = decode_at(cls, version, spoilt, 0)
    except DecodeError:
        return
    again = encode(message, version)
    assert encode(decode(cls, version, again), version) == again
    assert end <= len(spoilt)
