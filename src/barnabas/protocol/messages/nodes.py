"""Brokers and controllers of a cluster: registration, heartbeats, features."""

from barnabas.base.ids import Uuid
from barnabas.protocol.fields import (
    array_of,
    boolean,
    int8,
    int16,
    int32,
    int64,
    string,
    uint16,
    uuid,
)
from barnabas.protocol.schema import Message, Struct, message, struct

# BrokerRegistration: a broker joins the cluster (KIP-631, KIP-858, KIP-584).


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


# BrokerHeartbeat: a broker proves to be alive, and asks to be unfenced or to shut down.
#
# Source: KIP-631.


@message(versions="0-2", flexible="0+", api_key=63, listeners=("controller",))
class BrokerHeartbeatRequest(Message):
    broker_id: int = int32("0+")
    broker_epoch: int = int64("0+", default=-1)
    current_metadata_offset: int = int64("0+")
    want_fence: bool = boolean("0+")
    want_shut_down: bool = boolean("0+")
    offline_log_dirs: list[Uuid] = array_of(uuid, "1+", tagged="1+", tag=0)
    cordoned_log_dirs: list[Uuid] | None = array_of(
        uuid, "2+", nullable="2+", default=None, tagged="2+", tag=1
    )


@message(versions="0-2", flexible="0+", api_key=63)
class BrokerHeartbeatResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    is_caught_up: bool = boolean("0+")
    is_fenced: bool = boolean("0+", default=True)
    should_shut_down: bool = boolean("0+")


# UnregisterBroker: remove a broker for good (KIP-631).


@message(versions="0", flexible="0+", api_key=64, listeners=("broker", "controller"))
class UnregisterBrokerRequest(Message):
    broker_id: int = int32("0+")


@message(versions="0", flexible="0+", api_key=64)
class UnregisterBrokerResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")


# ControllerRegistration: a controller makes its endpoints and features known (KIP-919).


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


# UpdateFeatures: raise or lower finalized features (KIP-584, KIP-778).


@struct
class FeatureUpdateKey(Struct):
    feature: str = string("0+", map_key=True)
    max_version_level: int = int16("0+")
    allow_downgrade: bool = boolean("0")
    upgrade_type: int = int8("1+", default=1)


@message(versions="0-2", flexible="0+", api_key=57, listeners=("broker", "controller"))
class UpdateFeaturesRequest(Message):
    timeout_ms: int = int32("0+", default=60000)
    feature_updates: list[FeatureUpdateKey] = array_of(FeatureUpdateKey, "0+")
    validate_only: bool = boolean("1+")


@struct
class UpdatableFeatureResult(Struct):
    feature: str = string("0+", map_key=True)
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")


@message(versions="0-2", flexible="0+", api_key=57)
class UpdateFeaturesResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    results: list[UpdatableFeatureResult] = array_of(UpdatableFeatureResult, "0-1", ignorable=True)
