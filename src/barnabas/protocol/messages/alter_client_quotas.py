"""AlterClientQuotas: set and remove client quotas (KIP-546)."""

from barnabas.protocol.fields import array_of, boolean, float64, int16, int32, string
from barnabas.protocol.schema import Message, Struct, message, struct


@struct
class AlterClientQuotasRequestEntityData(Struct):
    entity_type: str = string("0+")
    entity_name: str | None = string("0+", nullable="0+")


@struct
class OpData(Struct):
    key: str = string("0+")
    value: float = float64("0+")
    remove: bool = boolean("0+")


@struct
class AlterClientQuotasRequestEntryData(Struct):
    entity: list[AlterClientQuotasRequestEntityData] = array_of(
        AlterClientQuotasRequestEntityData, "0+"
    )
    ops: list[OpData] = array_of(OpData, "0+")


@message(versions="0-1", flexible="1+", api_key=49, listeners=("broker", "controller"))
class AlterClientQuotasRequest(Message):
    entries: list[AlterClientQuotasRequestEntryData] = array_of(
        AlterClientQuotasRequestEntryData, "0+"
    )
    validate_only: bool = boolean("0+")


@struct
class AlterClientQuotasResponseEntityData(Struct):
    entity_type: str = string("0+")
    entity_name: str | None = string("0+", nullable="0+")


@struct
class AlterClientQuotasResponseEntryData(Struct):
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    entity: list[AlterClientQuotasResponseEntityData] = array_of(
        AlterClientQuotasResponseEntityData, "0+"
    )


@message(versions="0-1", flexible="1+", api_key=49)
class AlterClientQuotasResponse(Message):
    throttle_time_ms: int = int32("0+")
    entries: list[AlterClientQuotasResponseEntryData] = array_of(
        AlterClientQuotasResponseEntryData, "0+"
    )
