"""The committed state of this instance: what the records of the topic add up to so far."""

import logging

from barnabas.registry.kafka.batch import OwnRecord, stamped
from barnabas.registry.store.encoding import decode_key, decode_value
from barnabas.registry.store.records import Key, NoopKey, UnreadableRecordError
from barnabas.registry.store.state import RegistryState

telemetry = logging.getLogger(__name__)


class Replica:
    """Applies records in the order of the topic. A bad one is logged and passed over."""

    def __init__(self) -> None:
        self.state = RegistryState()
        self.skipped = 0
        """Records that could not be read, or contradict what is known."""
        self._expected: dict[int, OwnRecord] = {}
        """Records that this instance has written and not read back, by offset."""

    def expect(self, offset: int, record: OwnRecord) -> None:
        """The brokers have put a record of our own at an offset; it may be committed."""
        self._expected[offset] = record

    def expect_no_longer(self, offset: int) -> None:
        """The offset is passed: what was there is applied, or was not committed."""
        self._expected.pop(offset, None)

    def apply(
        self, offset: int, timestamp_ms: int, key_data: bytes | None, value_data: bytes | None
    ) -> Key | None:
        """Apply one record; returns its key if it is somebody else's and may change something."""
        own = self._expected.pop(offset, None)
        if own is not None and (own.key_data, own.value_data) != (key_data, value_data):
            own = None  # an unclean election of the partition's leader has put another one there
        try:
            key = decode_key(key_data)
            if isinstance(key, NoopKey) and key.subject is None:
                return None
            value = decode_value(key, value_data, timestamp_ms)
        except UnreadableRecordError as error:
            self._skip(offset, str(error))
            return None
        if own is not None and own.value == value:
            value = stamped(own.value, timestamp_ms)
        complaint = self.state.replay(key, value, offset)
        if complaint is not None:
            self._skip(offset, complaint)
        if own is None:
            return key
        own.is_applied = complaint is None
        return None

    def _skip(self, offset: int, reason: str) -> None:
        self.skipped += 1
        telemetry.warning("the record at offset %d is ignored: %s", offset, reason)
