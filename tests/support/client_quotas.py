"""Client quotas as a client sets them."""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    AlterClientQuotasResponse,
    EntityData,
    OpData,
)
from support.raw_client import RawClient


def alter(client: RawClient, entity: dict[str, str | None], **values: float | None) -> None:
    """Set the limits of an entity; None removes one."""
    entry = AlterClientQuotasRequestEntryData(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
        ops=[
            OpData(key=key, value=value or 0.0, remove=value is None)
            for key, value in values.items()
        ],
    )
    request = AlterClientQuotasRequest(entries=[entry])
    (answer,) = client.call(request, AlterClientQuotasResponse).entries
    assert (answer.error_code, answer.error_message) == (ErrorCode.NONE, None)
