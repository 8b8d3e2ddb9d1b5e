"""The committed state: records applied one by one, bad ones passed over."""

import logging

import pytest

from barnabas.registry.kafka.replica import Replica
from barnabas.registry.store.records import SchemaKey

KEY = b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}'
VALUE = b'{"subject":"s","version":1,"id":1,"schema":"\\"int\\"","deleted":false}'


def test_records_add_up() -> None:
    replica = Replica()
    assert replica.apply(0, 5, b'{"keytype":"NOOP","magic":0}', None) is None
    assert replica.apply(1, 6, KEY, VALUE) == SchemaKey("s", 1)
    (found,) = replica.state.versions("s")
    assert (found.id, found.text, found.timestamp_ms) == (1, '"int"', 6)
    assert replica.skipped == 0


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, VALUE),
        (b"", VALUE),
        (b"\xff", VALUE),
        (b"{", VALUE),
        (b"[]", VALUE),
        (b'{"keytype":"HAT","magic":0}', VALUE),
        (KEY, b"{"),
        (KEY, b"\x00\x00"),
        (KEY, b'{"subject":"s"}'),
        (KEY, b"[" * 100_000),
        (b"[" * 100_000, VALUE),
    ],
)
def test_a_bad_record_is_passed_over_by_offset(
    key: bytes | None, value: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    replica = Replica()
    with caplog.at_level(logging.WARNING):
        assert replica.apply(41, 5, key, value) is None
    assert "the record at offset 41 is ignored" in caplog.text
    replica.apply(42, 6, KEY, VALUE)
    assert len(replica.state.versions("s")) == 1
    assert replica.skipped == 1
