"""ControllerRegistration: a controller makes its endpoints and features known (KIP-919)."""

from barnabas.base.ids import Uuid
from barnabas.protocol.fields import array_of, boolean, int16, int32, string, uint16, uuid
from barnabas.protocol.schema import Message, Struct, message, struct


@struct
class Listener(Struct):
    name: str = string("0+", map_key=True)
    host: str = string("0+")
    port: int = uint16("0+")
    security_protocol: int = int16("0+")


@struct
class Feature(Struct):
    name: str = string("0+", map_key=True)
    min_supported_version: int = int16("0+")
    max_supported_version: int = int16("0+")


@message(versions="0", flexible="0+", api_key=70, listeners=("controller",))
class ControllerRegistrationRequest(Message):
    controller_id: int = int32("0+")
    incarnation_id: Uuid = uuid("0+")
    zk_migration_ready: bool = boolean("0+")
    listeners: list[Listener] = array_of(Listener, "0+")
    features: list[Feature] = array_of(Feature, "0+")


@message(versions="0", flexible="0+", api_key=70)
class ControllerRegistrationResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
