"""UpdateFeatures (API 57, versions 0-2; KIP-584, KIP-778, KIP-853, KIP-1022).

A level is finalized only if every registered broker and controller can run it. `kraft.version`
belongs to the quorum and to no metadata record: where it is as wanted already, as when a release
names the levels, all is well. Raised from 0 to 1, where the quorum can, it is appended before the
records of the other updates; it never falls.
"""

from collections.abc import Mapping
from enum import IntEnum

from barnabas.node.metadata.controller.config_changes import elr_safety_records
from barnabas.node.metadata.controller.decision import ControllerState, Decision, Failure
from barnabas.node.metadata.records import MetadataRecord
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.features import (
    ELR_VERSION,
    FEATURES,
    KRAFT_VERSION,
    METADATA_VERSION,
    SUPPORTED_FEATURES,
    MetadataVersion,
    records_changed_between,
    unmet_requirement,
)
from barnabas.protocol.messages.metadata_records import FeatureLevelRecord
from barnabas.protocol.messages.nodes import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)


class UpgradeType(IntEnum):
    """The allowed change of a level: a rise, a safe fall, or a fall that loses data."""

    UNKNOWN = 0
    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


def update_features(
    state: ControllerState, request: UpdateFeaturesRequest
) -> Decision[UpdateFeaturesResponse]:
    """All updates or none: the first that cannot be done refuses the request."""
    if not request.feature_updates:
        return _answer(
            request, Failure(ErrorCode.INVALID_REQUEST, "Can not provide empty FeatureUpdates.")
        )
    wanted = {update.feature: update.max_version_level for update in request.feature_updates}
    if len(wanted) != len(request.feature_updates):
        return _answer(
            request, Failure(ErrorCode.INVALID_REQUEST, "Each feature may be updated once.")
        )
    levels = {**state.image.features, **wanted}
    records: list[MetadataRecord] = []
    kraft_version: int | None = None
    for update in request.feature_updates:
        message = _refusal(state, update, levels)
        if message is not None:
            return _answer(request, Failure(ErrorCode.INVALID_UPDATE_VERSION, message))
        name, level = update.feature, update.max_version_level
        if level == _current_level(state, name):
            continue
        if name == KRAFT_VERSION:
            kraft_version = level
            continue
        if name == ELR_VERSION and level >= 1:
            records += elr_safety_records(state)
        records.append(MetadataRecord(FeatureLevelRecord(name=name, feature_level=level)))
    decision = _answer(request, None)
    if not request.validate_only:
        decision.records, decision.kraft_version = records, kraft_version
    return decision


def _answer(
    request: UpdateFeaturesRequest, failure: Failure | None
) -> Decision[UpdateFeaturesResponse]:
    """In versions 0 and 1 a success is repeated for each feature; a failure is the whole's."""
    if failure is not None:
        return Decision(
            UpdateFeaturesResponse(error_code=failure.code, error_message=failure.message)
        )
    return Decision(
        UpdateFeaturesResponse(
            error_message=None,
            results=[
                UpdatableFeatureResult(feature=update.feature, error_message=None)
                for update in request.feature_updates
            ],
        )
    )


def _upgrade_type(update: FeatureUpdateKey) -> UpgradeType:
    if update.allow_downgrade:  # version 0 had this flag only
        return UpgradeType.SAFE_DOWNGRADE
    try:
        return UpgradeType(update.upgrade_type)
    except ValueError:
        return UpgradeType.UNKNOWN


def _refusal(
    state: ControllerState, update: FeatureUpdateKey, levels: Mapping[str, int]
) -> str | None:
    name, level = update.feature, update.max_version_level
    reason = _reason(state, update, levels)
    if reason is not None:
        return f"Invalid update version {level} for feature {name}. {reason}"
    if name == KRAFT_VERSION:
        return state.kraft_version_refusal(level)
    return None


def _reason(
    state: ControllerState, update: FeatureUpdateKey, levels: Mapping[str, int]
) -> str | None:
    name, level = update.feature, update.max_version_level
    upgrade_type = _upgrade_type(update)
    current = _current_level(state, name)
    if upgrade_type is UpgradeType.UNKNOWN:
        return "The controller does not support the given upgrade type."
    if level < 0:
        return "A feature version cannot be less than 0."
    reason = _unsupported(state, name, level)
    if reason is not None:
        return reason
    if level < current and upgrade_type is UpgradeType.UPGRADE:
        return (
            "Can't downgrade the version of this feature without setting the upgrade type to "
            "either safe or unsafe downgrade."
        )
    if level > current and upgrade_type is not UpgradeType.UPGRADE:
        return "Can't downgrade to a newer version."
    if name == KRAFT_VERSION:
        return "Can't downgrade the version of this feature." if level < current else None
    if name == METADATA_VERSION:
        return _metadata_version_refusal(state, level, upgrade_type)
    return unmet_requirement(name, level, levels)


def _current_level(state: ControllerState, name: str) -> int:
    return state.kraft_version if name == KRAFT_VERSION else state.image.features.get(name, 0)


def _metadata_version_refusal(
    state: ControllerState, level: int, upgrade_type: UpgradeType
) -> str | None:
    current, wanted = state.image.metadata_version, MetadataVersion(level)
    for name, feature_level in state.image.features.items():
        if name in FEATURES:
            reason = unmet_requirement(name, feature_level, {METADATA_VERSION: level})
            if reason is not None:
                return reason
    if wanted < current and records_changed_between(wanted, current):
        if upgrade_type is UpgradeType.UNSAFE_DOWNGRADE:
            return "Unsafe metadata downgrade is not supported in this version."
        return (
            "Refusing to perform the requested downgrade because it might delete metadata "
            "information."
        )
    return None


def _unsupported(state: ControllerState, name: str, level: int) -> str | None:
    """Name a node that does not support the level, if there is one."""
    nodes = [(f"Local controller {state.node_id}", SUPPORTED_FEATURES)]
    nodes += [(f"Broker {broker.id}", broker.features) for broker in state.image.brokers.values()]
    nodes += [
        (f"Controller {controller.id}", controller.features)
        for controller in state.image.controllers.values()
        if controller.id != state.node_id
    ]
    for who, features in nodes:
        least, greatest = features.get(name, (0, 0))
        if greatest == 0:
            return f"{who} does not support this feature."
        if not least <= level <= greatest:
            return f"{who} only supports versions {least}-{greatest}"
    return None
