"""Our bytes against kio's, an independent codec of the same definitions.

For each message and version that kio has: kio reads our bytes, holds our values in its fields,
writes the same bytes again, and we read the same message back. kio has no metadata, coordinator,
raft-file or storage records; `test_what_kio_lacks` counts them.
"""

import dataclasses
import datetime
import importlib
import io
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode as PeerErrorCode
from kio.schema.index import schema_name_map
from kio.serial import entity_reader, entity_writer
from protocol_values import all_versions, label, limit_error_codes, plain, struct_values

from barnabas.base.ids import ZERO_UUID
from barnabas.protocol.codec import decode, encode
from barnabas.protocol.schema import Message, Struct
from support.effort import examples

limit_error_codes([code.value for code in PeerErrorCode])

MILLISECOND = datetime.timedelta(milliseconds=1)
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def peer_modules() -> dict[tuple[str, int], str]:
    """The modules of kio's classes by name and version; to import them all takes seconds."""
    found = {}
    for versions in schema_name_map.values():
        for version, kinds in versions.items():
            for path in kinds.values():
                module, _, name = path.partition(":")
                found[name, int(version)] = module
    return found


PEERS = peer_modules()
SHARED = [(cls, version) for cls, version in all_versions() if (cls.__name__, version) in PEERS]
LACKING = [
    (cls, version) for cls, version in all_versions() if (cls.__name__, version) not in PEERS
]


def test_what_kio_lacks() -> None:
    assert len(SHARED) + len(LACKING) == len(all_versions())
    assert len(SHARED) == len(PEERS), "kio has a version that we lack"
    assert {cls for cls, _ in LACKING if cls.SCHEMA.listeners} == set(), "an API that kio lacks"


@pytest.mark.parametrize("cls", dict.fromkeys(cls for cls, _ in SHARED), ids=label)
def test_bytes_equal(cls: type[Message]) -> None:
    for version in (version for shared, version in SHARED if shared is cls):
        assert_bytes_equal(cls, version)


@settings(
    max_examples=examples(2),
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data())
def assert_bytes_equal(cls: Any, version: int, data: st.DataObject) -> None:
    peer = getattr(importlib.import_module(PEERS[cls.__name__, version]), cls.__name__)
    ours = data.draw(struct_values(cls, version, peer))
    encoded = encode(ours, version)
    theirs: Any
    theirs, size = entity_reader(peer)(encoded, 0)
    assert size == len(encoded)
    assert_same(ours, theirs, version)
    written = io.BytesIO()
    entity_writer(peer)(written, theirs)
    assert written.getvalue() == encoded
    assert decode(cls, version, encoded) == ours


def assert_same(ours: Struct, theirs: Any, version: int) -> None:
    """Each field that the version carries holds the same in both."""
    peers = {plain(field.name): getattr(theirs, field.name) for field in dataclasses.fields(theirs)}
    for field in ours.SCHEMA.fields:
        if field.versions.covers(version):
            mine, other = getattr(ours, field.name), peers.pop(plain(field.name))
            if isinstance(mine, list):
                assert len(mine) == len(other)
                for one, two in zip(mine, other, strict=True):
                    assert_value(one, two, version)
            else:
                assert_value(mine, other, version)
    assert peers == {}


def assert_value(mine: object, other: object, version: int) -> None:
    if isinstance(mine, Struct):
        assert_same(mine, other, version)
    elif isinstance(other, PeerErrorCode):
        assert mine == other.value
    elif isinstance(other, datetime.timedelta):
        assert mine == other // MILLISECOND
    elif isinstance(other, datetime.datetime):
        assert mine == (other - EPOCH) // MILLISECOND
    elif isinstance(other, UUID):
        assert mine == other.bytes
    elif other is None:
        assert mine in (None, ZERO_UUID, -1)
    else:
        assert mine == other
