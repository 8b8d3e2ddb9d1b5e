"""UpdateFeatures: raise or lower finalized features (KIP-584, KIP-778)."""

from barnabas.protocol.fields import array_of, boolean, int8, int16, int32, string
from barnabas.protocol.schema import Message, Struct, message, struct


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
