"""BrokerRegistration: a broker joins the cluster (KIP-631, KIP-858, KIP-584)."""

from barnabas.base.ids import Uuid
from barnabas.protocol.fields import array_of, boolean, int16, int32, int64, string, uint16, uuid
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


@message(versions="0-4", flexible="0+", api_key=62, listeners=("controller",))
class BrokerRegistrationRequest(Message):
    broker_id: int = int32("0+")
    cluster_id: str = string("0+")
    incarnation_id: Uuid = uuid("0+")
    listeners: list[Listener] = array_of(Listener, "0+")
    features: list[Feature] = array_of(Feature, "0+")
    rack: str | None = string("0+", nullable="0+")
    is_migrating_zk_broker: bool = boolean("1+")
    log_dirs: list[Uuid] = array_of(uuid, "2+", ignorable=True)
    previous_broker_epoch: int = int64("3+", default=-1, ignorable=True)


@message(versions="0-4", flexible="0+", api_key=62)
class BrokerRegistrationResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    broker_epoch: int = int64("0+", default=-1)
