"""Requests with one long list, made from their schemas: one for each list of each API.

Each is there in the newest and in the oldest version that is served.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from barnabas.node.broker.controller.handlers import CONTROLLER_ROUTES
from barnabas.node.broker.handlers import ROUTES
from barnabas.protocol.apis import APIS, ApiKey
from barnabas.protocol.codec import decode, encode
from barnabas.protocol.codec.runtime import REQUEST_NAMES_MAX
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.frames import encode_request
from barnabas.protocol.schema import Field, FieldType, Struct
from barnabas.protocol.well_known import CLUSTER_METADATA

KNOWN = "growing"
"""A topic, a group and a transactional id."""
LEFT_OUT = {
    ApiKey.SASL_HANDSHAKE,
    ApiKey.SASL_AUTHENTICATE,
    ApiKey.ENVELOPE,  # it holds another request
    ApiKey.ADD_RAFT_VOTER,
    ApiKey.REMOVE_RAFT_VOTER,
    ApiKey.UPDATE_RAFT_VOTER,
    ApiKey.UNREGISTER_BROKER,
    ApiKey.BROKER_REGISTRATION,  # the node would be gone
    ApiKey.CONTROLLER_REGISTRATION,
}
METADATA_LOG = {
    ApiKey.DESCRIBE_QUORUM,
    ApiKey.VOTE,
    ApiKey.BEGIN_QUORUM_EPOCH,
    ApiKey.END_QUORUM_EPOCH,
    ApiKey.FETCH_SNAPSHOT,
}
"""APIs that serve the partition of the metadata log, and no other."""
VALUES: dict[str, Any] = {
    "acks": -1,
    "allow_auto_topic_creation": False,
    "broker_id": 1,
    "config_operation": 0,
    "coordinator_epoch": 0,
    "entity_type": "user",
    "generation_id": -1,
    "generation_id_or_member_epoch": -1,
    "isolation_level": 0,
    "key_type": 0,
    "max_bytes": 1 << 20,
    "max_wait_ms": 0,
    "min_bytes": 0,
    "mechanism": 1,
    "iterations": 4096,
    "num_partitions": 1,
    "operation": 3,
    "partition_max_bytes": 1 << 10,
    "pattern_type": 3,
    "pattern_type_filter": 3,
    "permission_type": 3,
    "principal": "User:somebody",
    "host": "*",
    "protocol_type": "consumer",
    "rebalance_timeout_ms": 60_000,
    "replica_id": -1,
    "replication_factor": 1,
    "resource_pattern_type": 3,
    "resource_type": 2,
    "resource_type_filter": 2,
    "session_timeout_ms": 10_000,
    "session_epoch": -1,
    "share_session_epoch": 0,
    "member_epoch": 0,
    "timeout_ms": 1000,
    "transaction_timeout_ms": 60_000,
    "validate_only": True,
}


class Known(NamedTuple):
    """Ids that the node knows."""

    topic_id: bytes
    producer_id: int


class Case(NamedTuple):
    """A request whose list at `path` is long."""

    key: int
    path: tuple[str, ...]
    version: int
    is_same: bool
    is_for_controller: bool

    def __str__(self) -> str:
        where = "-controller" if self.is_for_controller else ""
        kind = "same" if self.is_same else "distinct"
        return f"{ApiKey(self.key).name}{where}-v{self.version}-{'.'.join(self.path)}-{kind}"


def lists_of(of: type[Struct], version: int) -> Iterator[tuple[str, ...]]:
    """The path to each list in a struct."""
    for field in of.SCHEMA.fields:
        if not field.versions.covers(version):
            continue
        element = field.type.element
        if element is not None:
            yield (field.name,)
        inner = field.type.struct if element is None else element.struct
        if inner is not None:
            for path in lists_of(inner, version):
                yield (field.name, *path)


def cases() -> Iterator[Case]:
    """Each list of each API that a listener serves, of equal names and of different ones."""
    served = [(route.api.key, False) for route in ROUTES]
    served += [(route.api.key, True) for route in CONTROLLER_ROUTES]
    for key, is_for_controller in served:
        if key in LEFT_OUT:
            continue
        api = APIS[key]
        for version in sorted({api.min_version, api.max_stable_version}, reverse=True):
            for path in lists_of(api.request, version):
                for is_same in (False, True):
                    yield Case(key, path, version, is_same, is_for_controller)


def frame_of(case: Case, count: int, known: Known) -> bytes:
    """The frame, without its length, of a request whose list has so many elements.

    It has half as many, or a quarter, where it would name more than a request may.
    """
    of = APIS[case.key].request
    request = Maker(case, count, known).make(of, case.path)
    body = encode(request, case.version)
    try:
        decode(of, case.version, body)
    except DecodeError as error:
        if f"names {REQUEST_NAMES_MAX} things at most" not in str(error):
            raise
        return frame_of(case, count // 2, known)
    return encode_request(case.key, case.version, 1, "raw", request)


class Maker:
    """Makes the struct of a request."""

    def __init__(self, case: Case, count: int, known: Known) -> None:
        self._version = case.version
        self._known_name = KNOWN
        if case.key in METADATA_LOG or (case.key == ApiKey.FETCH and case.is_for_controller):
            self._known_name = CLUSTER_METADATA
        self._is_same = case.is_same
        self._count = count
        self._known = known

    def make(self, of: type[Struct], path: tuple[str, ...], number: int = 0) -> Any:
        """The struct of this number among its like; `path` leads to the list that is long."""
        values = {}
        for field in of.SCHEMA.fields:
            if field.versions.covers(self._version) and field.tag < 0:
                inner = path[1:] if path and path[0] == field.name else None
                values[field.name] = self._field(field, inner, number, is_long=inner == ())
        return of(**values)

    def _field(
        self, field: Field, path: tuple[str, ...] | None, number: int, *, is_long: bool
    ) -> Any:
        element = field.type.element
        if element is None:
            if field.type.struct is not None:
                if path is None and field.nullable.covers(self._version):
                    return None
                return self.make(field.type.struct, path or (), number)
            return self._plain(field.name, field.type, number)
        if path is None and field.nullable.covers(self._version):
            return None  # which often means all
        count = self._count if is_long else 1
        numbers = [0] * count if self._is_same else range(count)
        if count == 1:
            numbers = [number]
        if element.struct is not None:
            return [self.make(element.struct, path or (), each) for each in numbers]
        return [self._plain(field.name, element, each) for each in numbers]

    def _plain(self, name: str, of: FieldType, number: int) -> Any:
        if name in VALUES:
            return VALUES[name]
        match of.kind:
            case "bool":
                return False
            case "float64":
                return 1000.0
            case "uuid":
                return self._known.topic_id if not number else number.to_bytes(16, "big")
            case "string":
                return self._known_name if not number else f"{KNOWN}-{number}"
            case "bytes" | "records":
                return b""
            case "int64" if name == "producer_id":
                return self._known.producer_id
        return number if "partition" in name or "index" in name else 0


CASES = list(cases())
