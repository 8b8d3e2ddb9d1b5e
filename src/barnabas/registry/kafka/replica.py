"""The committed state of this instance: what the records of the topic add up to so far."""

import logging

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

    def apply(
        self, offset: int, timestamp_ms: int, key_data: bytes | None, value_data: bytes | None
    ) -> Key | None:
        """Apply one record; returns its key if it may have changed something."""
        try:
            key = decode_key(key_data)
            if isinstance(key, NoopKey) and key.subject is None:
                return None
            value = decode_value(key, value_data, timestamp_ms)
        except UnreadableRecordError as error:
            self._skip(offset, str(error))
            return None
        complaint = self.state.replay(key, value, offset)
        if complaint is not None:
            self._skip(offset, complaint)
        return key

    def _skip(self, offset: int, reason: str) -> None:
        self.skipped += 1
        telemetry.warning("the record at offset %d is passed over: %s", offset, reason)
