"""Requests that declare more than they hold are refused, and nothing is made room for."""

import tracemalloc

import pytest

from barnabas.protocol.apis import APIS, ApiKey
from barnabas.protocol.codec import decode_at
from barnabas.protocol.errors import DecodeError

BODIES = {
    "arrays of two billion": b"\x7f\xff\xff\xff" * 8,
    "arrays of two billion behind a field": bytes(4) + b"\x7f\xff\xff\xff" * 8,
    "compact arrays of two billion": b"\xff\xff\xff\xff\x07" * 8,
    "compact arrays of four billion": b"\xff\xff\xff\xff\x0f" * 8,
    "compact ones behind a field": b"\x01" + b"\xff\xff\xff\xff\x07" * 6,
    "strings of 32 KB": b"\x7f\xff" * 16,
}
ROOM_BYTES = 1 << 20


@pytest.mark.parametrize("case", BODIES)
def test_declared_sizes_are_not_believed(case: str) -> None:
    body = bytearray(BODIES[case])
    places = [(api, version) for api in APIS.values() for version in _versions(api.key)]
    for api, version in places:  # compiles the codecs, which does take memory
        _decode(api.key, version, bytearray())
    tracemalloc.start()
    try:
        for api, version in places:
            _decode(api.key, version, body)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < ROOM_BYTES


def _versions(key: ApiKey) -> range:
    return range(APIS[key].min_version, APIS[key].max_version + 1)


def _decode(key: ApiKey, version: int, body: bytearray) -> None:
    """A few bodies are requests by chance; anything but a DecodeError is a fault."""
    try:
        decode_at(APIS[key].request, version, body, 0)
    except DecodeError:
        return
