"""Quotas as commands work with them, and the requests that list, set and remove them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from barnabas.cli.admin import Admin
from barnabas.cli.errors import from_code
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    ComponentData,
    DescribeClientQuotasRequest,
    OpData,
)

EXACT, DEFAULT = 0, 1
"""How a filter compares an entity's name."""
Entity = Mapping[str, str | None]
"""Names by kind (`user`, `client-id`, `ip`); None is the default of the kind."""


@dataclass(frozen=True, slots=True)
class Quota:
    """The limits of one entity."""

    entity: Entity
    values: Mapping[str, float]


def list_quotas(admin: Admin, entity: Entity, *, is_strict: bool = False) -> list[Quota]:
    """The quotas that name all of `entity`, and with `is_strict` nothing else. Raises CliError."""
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
    admin: Admin, entity: Entity, values: Mapping[str, float], removed: Iterable[str] = ()
) -> None:
    """Set and remove limits of one entity. Raises CliError."""
    request = AlterClientQuotasRequest(
        entries=[
            AlterClientQuotasRequestEntryData(
                entity=[
                    AlterClientQuotasRequestEntityData(entity_type=kind, entity_name=name)
                    for kind, name in entity.items()
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
            raise from_code(entry.error_code, entry.error_message, entity_text(entity))


def entity_text(entity: Entity) -> str:
    """As people read it: `user=alice, client-id=<default>`."""
    order = ("user", "client-id", "ip")
    kinds = sorted(entity, key=lambda kind: order.index(kind) if kind in order else len(order))
    return ", ".join(
        f"{kind}={'<default>' if entity[kind] is None else entity[kind]}" for kind in kinds
    )
