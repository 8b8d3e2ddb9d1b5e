"""SCRAM credentials by which clients and nodes log in to this node.

They are metadata, so they hold as the image has them. But the controllers of a quorum log in to
each other before there is a leader, and so before any of them knows what is committed: until its
image has caught up with what its log held at the start, a node goes by its log, and where that is
empty by the records of `storage format --add-scram`.
"""

from collections.abc import Callable, Iterable

from barnabas.base.disk import Disk
from barnabas.base.scram import HASHES
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.config.sasl import enabled_mechanisms, uses_sasl
from barnabas.node.metadata.bootstrap import read_bootstrap
from barnabas.node.metadata.image import MetadataImage
from barnabas.node.metadata.records import decode_record
from barnabas.node.raft.recovery import LogBatch
from barnabas.node.raft.snapshot_files import SnapshotError
from barnabas.protocol.messages.metadata_records import (
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from barnabas.protocol.schema import Message

_TYPES = {
    bytes((record.SCHEMA.api_key or 0,))
    for record in (UserScramCredentialRecord, RemoveUserScramCredentialRecord)
}
"""Numbers of the two types, which are the second byte of a record's value."""


class ScramCredentials:
    """Finds what is stored of a user's password."""

    __slots__ = ("_at_start", "_caught_up_at", "_firsts", "_image", "_is_starting", "_is_used")

    def __init__(self, config: NodeConfig, image: Callable[[], MetadataImage]) -> None:
        self._image = image
        self._is_used = any(
            name in HASHES
            for listener in config.listeners
            if uses_sasl(config, listener.name)
            for name in enabled_mechanisms(config, listener.name)
        )
        self._firsts: tuple[object, dict[int, UserScramCredentialRecord]] = (None, {})
        """The first user of each mechanism, and the credentials of which image they are."""
        self._is_starting = False
        self._caught_up_at = -1
        """The offset with which the image has all that the log held at the start."""
        self._at_start: dict[tuple[int, str], UserScramCredentialRecord | None] = {}
        """The log's records at that point, over the image."""

    def recovered(self, batches: Iterable[LogBatch], disk: Disk, directory: str) -> None:
        """Follow what the log held after the image, or the first records if it held nothing."""
        if not self._is_used:
            return
        self._is_starting = True
        for batch in batches:
            self._caught_up_at = batch.base_offset + len(batch.values) - 1
            for value in batch.values:
                if value[1:2] in _TYPES:
                    self._note(decode_record(value).message)
        if self._image().is_empty and self._caught_up_at < 0:
            try:
                first = read_bootstrap(disk, directory)
            except (SnapshotError, OSError):
                return  # who comes to lead says so
            for record in first:
                self._note(record.message)

    def _note(self, message: Message) -> None:
        match message:
            case UserScramCredentialRecord(mechanism=mechanism, name=name):
                self._at_start[mechanism, name] = message
            case RemoveUserScramCredentialRecord(mechanism=mechanism, name=name):
                self._at_start[mechanism, name] = None
            case _:
                pass

    def find(self, mechanism: int, user: str) -> UserScramCredentialRecord | None:
        """The credential that holds now, by Kafka's number of the mechanism."""
        image = self._image()
        if self._is_starting:
            if image.is_empty or image.offset < self._caught_up_at:
                if (mechanism, user) in self._at_start:
                    return self._at_start[mechanism, user]
            else:
                self._is_starting = False
                self._at_start.clear()
        return image.scram.get((mechanism, user))

    def first(self, mechanism: int) -> UserScramCredentialRecord | None:
        """The credential of the user whose name comes first: on all nodes the same."""
        known = self._image().scram
        seen, firsts = self._firsts
        if seen is not known:
            firsts = {}
            for (number, name), record in known.items():
                before = firsts.get(number)
                if before is None or name < before.name:
                    firsts[number] = record
            self._firsts = known, firsts
        return firsts.get(mechanism)
