"""AlterClientQuotas (API 49, versions 0-1; KIP-546, keys of KIP-599 and KIP-612).

Each entity is decided for itself: it is changed as a whole, or not at all. An address is an IP
address here; Kafka also takes the name of a host that it can resolve, which the brokers would
each resolve for themselves. Source: Kafka's ClientQuotaControlManager.
"""

import ipaddress
from typing import Final

from barnabas.node.metadata.controller.decision import ControllerState, Decision, Failure
from barnabas.node.metadata.image import QuotaEntity
from barnabas.node.metadata.quota_filter import (
    CLIENT_ID,
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    IP,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    USER,
)
from barnabas.node.metadata.records import MetadataRecord
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.metadata_records import ClientQuotaRecord
from barnabas.protocol.messages.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    AlterClientQuotasResponse,
    AlterClientQuotasResponseEntryData,
    EntityData,
)

CLIENT_KEYS: Final[dict[str, int | None]] = {
    PRODUCER_BYTE_RATE: 2**63 - 1,
    CONSUMER_BYTE_RATE: 2**63 - 1,
    REQUEST_PERCENTAGE: None,
    CONTROLLER_MUTATION_RATE: None,
}
"""The quotas of users and clients: a whole number up to this, or (None) any number."""
IP_KEYS: Final[dict[str, int | None]] = {CONNECTION_CREATION_RATE: 2**31 - 1}
_TYPE_NAMES = {2**63 - 1: "a LONG", 2**31 - 1: "an INT"}
_FRACTION_MAX = 1e-6


def alter_client_quotas(
    state: ControllerState, request: AlterClientQuotasRequest
) -> Decision[AlterClientQuotasResponse]:
    """Decide each entity of the request; one that is named twice keeps what was decided first."""
    decision = Decision(AlterClientQuotasResponse())
    results: dict[QuotaEntity, Failure | None] = {}
    for entry in request.entries:
        entity = _entity(entry)
        if entity in results:
            text = "Ignoring duplicate entity " + _text(entity)
            results[entity] = Failure(ErrorCode.INVALID_REQUEST, text)
            continue
        changes = _changes(entry, entity)
        records = changes if isinstance(changes, Failure) else _alter(state, entity, changes)
        if isinstance(records, Failure):
            results[entity] = records
        else:
            results[entity] = None
            decision.records += records
    if request.validate_only:
        decision.records.clear()
    decision.response.entries = [_result(entity, failure) for entity, failure in results.items()]
    return decision


def _entity(entry: AlterClientQuotasRequestEntryData) -> QuotaEntity:
    parts = {part.entity_type: part.entity_name for part in entry.entity}
    return tuple(sorted(parts.items(), key=lambda pair: pair[0]))


def _changes(
    entry: AlterClientQuotasRequestEntryData, entity: QuotaEntity
) -> dict[str, float | None] | Failure:
    """New values by key; None removes."""
    changes: dict[str, float | None] = {}
    for op in entry.ops:
        if op.key in changes:
            text = f"Duplicate quota key {op.key} not updating quota for this entity "
            return Failure(ErrorCode.INVALID_REQUEST, text + _text(entity))
        changes[op.key] = None if op.remove else op.value
    return changes


def _alter(
    state: ControllerState, entity: QuotaEntity, changes: dict[str, float | None]
) -> list[MetadataRecord] | Failure:
    keys = _keys_of(entity)
    if isinstance(keys, Failure):
        return keys
    current = state.image.client_quotas.get(entity, {})
    records = []
    for key, value in changes.items():
        if value is None:
            if key in current:
                records.append(_record(entity, key, remove=True))
            continue
        refusal = _refusal(keys, key, value)
        if refusal is not None:
            return Failure(ErrorCode.INVALID_REQUEST, refusal)
        if current.get(key) != value:
            records.append(_record(entity, key, value=value))
    return records


def _record(
    entity: QuotaEntity, key: str, *, value: float = 0.0, remove: bool = False
) -> MetadataRecord:
    return MetadataRecord(
        ClientQuotaRecord(
            entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
            key=key,
            value=value,
            remove=remove,
        )
    )


def _keys_of(entity: QuotaEntity) -> dict[str, int | None] | Failure:
    """The quotas that an entity may have, or what is wrong with it."""
    refusal = _entity_refusal(entity)
    if refusal is not None:
        return Failure(ErrorCode.INVALID_REQUEST, refusal)
    return IP_KEYS if entity[0][0] == IP else CLIENT_KEYS


def _entity_refusal(entity: QuotaEntity) -> str | None:
    if not entity:
        return "Invalid empty client quota entity"
    for kind, name in entity:
        if kind not in (USER, CLIENT_ID, IP):
            return f"Unhandled client quota entity type: {kind}"
        if name == "":
            return f"Empty {kind} not supported"
    parts = dict(entity)
    if IP in parts:
        if len(parts) > 1:
            return (
                "Invalid quota entity combination, IP entity should"
                "not be combined with User or ClientId"
            )
        if not _is_address(parts[IP]):
            return f"{parts[IP]} is not a valid IP or resolvable host."
    return None


def _is_address(ip: str | None) -> bool:
    if ip is None:
        return True
    try:
        ipaddress.ip_address(ip)
    except ValueError:
        return False
    return True


def _refusal(keys: dict[str, int | None], key: str, value: float) -> str | None:
    """Why a value cannot be set. One that is not a number is refused, which Kafka would take."""
    if key not in keys:
        return f"Invalid configuration key {key}"
    if not value > 0:
        return f"Quota {key} must be greater than 0"
    largest = keys[key]
    if largest is None:
        return None
    if value > largest:
        return f"Proposed value for {key} is too large for {_TYPE_NAMES[largest]}."
    if value % 1 > _FRACTION_MAX:
        return f"{key} cannot be a fractional value."
    return None


def _text(entity: QuotaEntity) -> str:
    """The entity as Kafka's errors print it."""
    inner = ", ".join(f"{kind}={'null' if name is None else name}" for kind, name in entity)
    return "ClientQuotaEntity(entries={" + inner + "})"


def _result(entity: QuotaEntity, failure: Failure | None) -> AlterClientQuotasResponseEntryData:
    return AlterClientQuotasResponseEntryData(
        error_code=ErrorCode.NONE if failure is None else failure.code,
        error_message=None if failure is None else failure.message,
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
    )
