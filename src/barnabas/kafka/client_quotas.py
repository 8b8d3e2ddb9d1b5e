"""Quotas of users, client ids and addresses, and the requests that list and change them.

Functions raise AdminError.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from barnabas.kafka.wire_admin import RefusedError, WireAdmin
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    ComponentData,
    DescribeClientQuotasRequest,
    EntityData,
    OpData,
)

KINDS: Final = ("user", "client-id", "ip")
KEYS: Final = {
    "producer_byte_rate": "bytes per second that they produce",
    "consumer_byte_rate": "bytes per second that they fetch",
    "request_percentage": "time of request threads, in percent of one",
    "controller_mutation_rate": "partitions per second that they create and delete",
    "connection_creation_rate": "connections per second of an address (ip)",
}
"""The supported quotas, with what each limits."""
EXACT, DEFAULT = 0, 1
"""A filter's match types: the exact name, or the default entity."""
Entity = Mapping[str, str | None]
"""Names by kind (`user`, `client-id`, `ip`); None is the default of the kind."""


@dataclass(frozen=True, slots=True)
class Quota:
    """The limits of one entity."""

    entity: Entity
    values: Mapping[str, float]


def list_quotas(admin: WireAdmin, entity: Entity, *, is_strict: bool = False) -> list[Quota]:
    """The quotas that name all of `entity`, and with `is_strict` nothing else."""
    request = DescribeClientQuotasRequest(
        components=[
            ComponentData(
                entity_type=kind, match_type=DEFAULT if name is None else EXACT, match=name
            )
            for kind, name in entity.items()
        ],
        strict=is_strict,
    )
    response = admin.decide(request, "quotas")
    found = [
        Quota(
            {part.entity_type: part.entity_name for part in entry.entity},
            {value.key: value.value for value in sorted(entry.values, key=lambda v: v.key)},
        )
        for entry in response.entries or ()
    ]
    return sorted(found, key=lambda quota: entity_text(quota.entity))


def change_quota(
    admin: WireAdmin, entity: Entity, values: Mapping[str, float], removed: Iterable[str] = ()
) -> None:
    """Set and remove limits of one entity."""
    request = AlterClientQuotasRequest(
        entries=[
            AlterClientQuotasRequestEntryData(
                entity=[
                    EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()
                ],
                ops=[
                    *(OpData(key=key, value=value) for key, value in values.items()),
                    *(OpData(key=key, remove=True) for key in removed),
                ],
            )
        ]
    )
    response = admin.retry(request, lambda answer: [item.error_code for item in answer.entries])
    for entry in response.entries:
        if entry.error_code != ErrorCode.NONE:
            raise RefusedError(entry.error_code, entry.error_message, entity_text(entity))


def entity_text(entity: Entity) -> str:
    """As people read it: `user=alice, client-id=<default>`."""
    kinds = sorted(entity, key=lambda kind: KINDS.index(kind) if kind in KINDS else len(KINDS))
    return ", ".join(
        f"{kind}={'<default>' if entity[kind] is None else entity[kind]}" for kind in kinds
    )
