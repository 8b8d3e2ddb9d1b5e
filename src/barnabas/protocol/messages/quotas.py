"""Quotas: DescribeClientQuotas, AlterClientQuotas."""

from barnabas.protocol.fields import array_of, boolean, float64, int8, int16, int32, string
from barnabas.protocol.schema import Message, Struct, message, struct

# DescribeClientQuotas: the client quotas that match a filter (KIP-546).


@struct
class ComponentData(Struct):
    entity_type: str = string("0+")
    match_type: int = int8("0+")
    match: str | None = string("0+", nullable="0+")


@message(versions="0-1", flexible="1+", api_key=48, listeners=("broker",))
class DescribeClientQuotasRequest(Message):
    components: list[ComponentData] = array_of(ComponentData, "0+")
    strict: bool = boolean("0+")


@struct
class EntityData(Struct):
    entity_type: str = string("0+")
    entity_name: str | None = string("0+", nullable="0+")


@struct
class ValueData(Struct):
    key: str = string("0+")
    value: float = float64("0+")


@struct
class EntryData(Struct):
    entity: list[EntityData] = array_of(EntityData, "0+")
    values: list[ValueData] = array_of(ValueData, "0+")


@message(versions="0-1", flexible="1+", api_key=48)
class DescribeClientQuotasResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    entries: list[EntryData] | None = array_of(EntryData, "0+", nullable="0+")


# AlterClientQuotas: set and remove client quotas (KIP-546).


@struct
class OpData(Struct):
    key: str = string("0+")
    value: float = float64("0+")
    remove: bool = boolean("0+")


@struct
class AlterClientQuotasRequestEntryData(Struct):
    entity: list[EntityData] = array_of(EntityData, "0+")
    ops: list[OpData] = array_of(OpData, "0+")


@message(versions="0-1", flexible="1+", api_key=49, listeners=("broker", "controller"))
class AlterClientQuotasRequest(Message):
    entries: list[AlterClientQuotasRequestEntryData] = array_of(
        AlterClientQuotasRequestEntryData, "0+"
    )
    validate_only: bool = boolean("0+")


@struct
class AlterClientQuotasResponseEntryData(Struct):
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    entity: list[EntityData] = array_of(EntityData, "0+")


@message(versions="0-1", flexible="1+", api_key=49)
class AlterClientQuotasResponse(Message):
    throttle_time_ms: int = int32("0+")
    entries: list[AlterClientQuotasResponseEntryData] = array_of(
        AlterClientQuotasResponseEntryData, "0+"
    )
