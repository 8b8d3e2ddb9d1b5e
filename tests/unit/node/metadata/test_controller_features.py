"""UpdateFeatures, activation, and the table of feature levels."""

import pytest
from controller_harness import Harness

from barnabas.node.metadata.bootstrap import feature_records
from barnabas.node.metadata.controller.activation import (
    BootstrapError,
    activation_records,
    bootstrap_level,
)
from barnabas.node.metadata.loader import NO_TRANSACTION
from barnabas.node.metadata.records import MetadataRecord
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.features import (
    ELR_VERSION,
    FEATURES,
    GROUP_VERSION,
    KRAFT_VERSION,
    METADATA_VERSION,
    TRANSACTION_VERSION,
    MetadataVersion,
    metadata_version_from_level,
    metadata_version_from_text,
    records_changed_between,
)
from barnabas.protocol.messages.metadata_records import AbortTransactionRecord, FeatureLevelRecord
from barnabas.protocol.messages.nodes import FeatureUpdateKey, UpdateFeaturesRequest

UPGRADE, SAFE, UNSAFE = 1, 2, 3


def update(
    controller: Harness, name: str, level: int, kind: int = UPGRADE, *, validate_only: bool = False
) -> tuple[ErrorCode, str]:
    response = controller.do(
        UpdateFeaturesRequest(
            feature_updates=[
                FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
            ],
            validate_only=validate_only,
        )
    )
    assert len(response.results) == (response.error_code == ErrorCode.NONE)
    return ErrorCode(response.error_code), response.error_message or ""


DEFAULT_LEVELS = {
    # As `kafka-storage version-mapping` of Apache Kafka 4.3.1 prints them.
    "3.3": (7, {}),
    "3.7": (19, {}),
    "3.9": (21, {"kraft.version": 1}),
    "4.0-IV0": (22, {"kraft.version": 1, "group.version": 1}),
    "4.0": (25, {"kraft.version": 1, "group.version": 1, "transaction.version": 2}),
    "4.1": (
        27,
        {
            "kraft.version": 1,
            "group.version": 1,
            "transaction.version": 2,
            "eligible.leader.replicas.version": 1,
        },
    ),
    "4.2-IV0": (
        28,
        {
            "kraft.version": 1,
            "group.version": 1,
            "transaction.version": 2,
            "eligible.leader.replicas.version": 1,
            "share.version": 1,
        },
    ),
    "4.3.1": (
        30,
        {
            "kraft.version": 1,
            "group.version": 1,
            "transaction.version": 2,
            "eligible.leader.replicas.version": 1,
            "share.version": 1,
            "streams.version": 1,
        },
    ),
}


@pytest.mark.parametrize("release", DEFAULT_LEVELS)
def test_default_levels_of_releases(release: str) -> None:
    level, expected = DEFAULT_LEVELS[release]
    version = metadata_version_from_text(release)
    assert version == level
    levels = {name: feature.default_level(version) for name, feature in FEATURES.items()}
    assert {name: value for name, value in levels.items() if value} == expected


@pytest.mark.parametrize("text", ["", "3.2", "4.4", "4.3-IV9", "latest"])
def test_unknown_releases(text: str) -> None:
    with pytest.raises(ValueError, match="unknown release version"):
        metadata_version_from_text(text)


def test_levels_beyond_this_release() -> None:
    assert metadata_version_from_level(30) is MetadataVersion.IBP_4_3_IV0
    with pytest.raises(ValueError, match=r"metadata\.version 31 is not supported"):
        metadata_version_from_level(31)


def test_a_cluster_climbs_level_by_level() -> None:
    controller = Harness(MetadataVersion.IBP_3_9_IV0)
    controller.add_brokers(1)
    assert update(controller, METADATA_VERSION, 30)[0] == 0
    assert controller.image.metadata_version is MetadataVersion.IBP_4_3_IV0
    assert update(controller, TRANSACTION_VERSION, 2)[0] == 0
    assert update(controller, ELR_VERSION, 1)[0] == 0
    configs = controller.image.configs.for_resource(4, "")
    assert configs == {"min.insync.replicas": "1"}, "one minimum for all, before ELR counts"


def test_validate_only_finalizes_nothing() -> None:
    controller = Harness(MetadataVersion.IBP_3_9_IV0)
    assert update(controller, METADATA_VERSION, 30, validate_only=True)[0] == 0
    assert controller.image.metadata_version is MetadataVersion.IBP_3_9_IV0


def test_a_level_can_fall_where_nothing_is_lost() -> None:
    controller = Harness()
    assert update(controller, GROUP_VERSION, 0, SAFE)[0] == 0
    assert GROUP_VERSION not in controller.image.features


REFUSED = {
    "unknown": ("shoe.version", 1, UPGRADE, "does not support this feature"),
    "negative": (GROUP_VERSION, -1, UPGRADE, "less than 0"),
    "too high": (GROUP_VERSION, 2, UPGRADE, "only supports versions 0-1"),
    "down without saying so": (GROUP_VERSION, 0, UPGRADE, "Can't downgrade"),
    "up by a downgrade": (TRANSACTION_VERSION, 2, SAFE, ""),
    "unknown upgrade type": (GROUP_VERSION, 1, 7, "upgrade type"),
    "kraft.version": (KRAFT_VERSION, 2, UPGRADE, "only supports versions 0-1"),
    "records would be lost": (METADATA_VERSION, 29, SAFE, "might delete metadata"),
    "records would be lost unsafely": (METADATA_VERSION, 29, UNSAFE, "not supported"),
    "others depend on it": (METADATA_VERSION, 22, SAFE, ELR_VERSION),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_updates(case: str) -> None:
    controller = Harness()
    controller.add_brokers(1)
    name, level, kind, words = REFUSED[case]
    before = controller.image.features
    code, message = update(controller, name, level, kind)
    if case != "up by a downgrade":  # the same level is neither
        assert code is ErrorCode.INVALID_UPDATE_VERSION
    assert words in message
    assert controller.image.features == before


@pytest.mark.parametrize(
    ("level", "kind", "words"),
    [(1, UPGRADE, ""), (1, SAFE, ""), (0, SAFE, "Can't downgrade"), (2, UPGRADE, "only supports")],
)
def test_the_quorum_keeps_its_own_level(level: int, kind: int, words: str) -> None:
    """A release names it beside the others, and is fine with what it is already."""
    controller = Harness()
    controller.kraft_version = 1
    code, message = update(controller, KRAFT_VERSION, level, kind)
    assert (code is ErrorCode.NONE) is (words == "")
    assert words in message
    assert controller.records == []


@pytest.mark.parametrize("validate_only", [False, True])
def test_the_quorums_level_is_raised_where_the_quorum_can(validate_only: bool) -> None:
    controller = Harness()
    code, _ = update(controller, KRAFT_VERSION, 1, validate_only=validate_only)
    assert code is ErrorCode.NONE
    assert controller.kraft_version == int(not validate_only)
    assert controller.records == [], "the quorum has a record of its own"
    assert update(controller, KRAFT_VERSION, 1, SAFE) == (
        (ErrorCode.INVALID_UPDATE_VERSION, f"{REFUSED_KRAFT} Can't downgrade to a newer version.")
        if validate_only
        else (ErrorCode.NONE, "")
    )


REFUSED_KRAFT = "Invalid update version 1 for feature kraft.version."


@pytest.mark.parametrize("validate_only", [False, True])
def test_what_the_quorum_says_is_answered_as_it_is(validate_only: bool) -> None:
    """As in Kafka, where it is an error of the quorum's and not of the features'."""
    controller = Harness()
    controller.kraft_version_refusal = "not all of the voters support it"
    assert update(controller, KRAFT_VERSION, 1, validate_only=validate_only) == (
        ErrorCode.INVALID_UPDATE_VERSION,
        "not all of the voters support it",
    )
    assert controller.kraft_version == 0


def test_nothing_is_raised_if_one_of_several_cannot_be() -> None:
    controller = Harness()
    controller.add_brokers(1)
    response = controller.do(
        UpdateFeaturesRequest(
            feature_updates=[
                FeatureUpdateKey(feature=KRAFT_VERSION, max_version_level=1, upgrade_type=UPGRADE),
                FeatureUpdateKey(feature=GROUP_VERSION, max_version_level=2, upgrade_type=UPGRADE),
            ]
        )
    )
    assert response.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert controller.kraft_version == 0


@pytest.mark.parametrize("kraft_version", [0, 1])
def test_a_release_names_all_levels_at_once(kraft_version: int) -> None:
    controller = Harness(MetadataVersion.IBP_3_9_IV0)
    controller.kraft_version = kraft_version
    levels = {METADATA_VERSION: 30, KRAFT_VERSION: 1, GROUP_VERSION: 1, ELR_VERSION: 1}
    response = controller.do(
        UpdateFeaturesRequest(
            feature_updates=[
                FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=UPGRADE)
                for name, level in levels.items()
            ]
        )
    )
    assert response.error_code == ErrorCode.NONE
    assert controller.kraft_version == 1
    del levels[KRAFT_VERSION]
    assert levels.items() <= controller.image.features.items()
    assert KRAFT_VERSION not in controller.image.features


def test_empty_and_repeated_updates_are_refused() -> None:
    controller = Harness()
    assert controller.do(UpdateFeaturesRequest()).error_code == ErrorCode.INVALID_REQUEST
    same = FeatureUpdateKey(feature=GROUP_VERSION, max_version_level=1)
    response = controller.do(UpdateFeaturesRequest(feature_updates=[same, same]))
    assert response.error_code == ErrorCode.INVALID_REQUEST


def test_downgrades_cross_no_record_change() -> None:
    assert not records_changed_between(MetadataVersion.IBP_4_0_IV1, MetadataVersion.IBP_4_2_IV1)
    assert records_changed_between(MetadataVersion.IBP_4_2_IV1, MetadataVersion.IBP_4_3_IV0)


# -- activation


def test_an_empty_log_begins_with_a_transaction() -> None:
    controller = Harness()
    assert controller.image.offset == 8
    assert controller.loader.transaction_offset == NO_TRANSACTION


def test_an_open_transaction_is_aborted() -> None:
    controller = Harness()
    bootstrap = feature_records({METADATA_VERSION: 30})
    assert activation_records(controller.state(), bootstrap, NO_TRANSACTION) == []
    [record] = activation_records(controller.state(), bootstrap, 5)
    assert isinstance(record.message, AbortTransactionRecord)


@pytest.mark.parametrize("levels", [{}, {METADATA_VERSION: 99}, {GROUP_VERSION: 1}])
def test_bootstrap_records_need_a_level_that_can_be_run(levels: dict[str, int]) -> None:
    records = [
        MetadataRecord(FeatureLevelRecord(name=name, feature_level=level))
        for name, level in levels.items()
    ]
    with pytest.raises(BootstrapError, match=r"metadata\.version"):
        bootstrap_level(records)
