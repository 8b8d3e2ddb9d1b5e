"""The first records of a controller that becomes active.

Into an empty log: the bootstrap records that `storage format` left, in one metadata transaction.
Into one that was left with an open transaction: its abortion.
Source: Kafka's ActivationRecordsGenerator.
"""

from barnabas.base.errors import ShownError
from barnabas.node.metadata.controller.config_changes import elr_safety_records
from barnabas.node.metadata.controller.decision import ControllerState
from barnabas.node.metadata.loader import NO_TRANSACTION
from barnabas.node.metadata.records import MetadataRecord
from barnabas.protocol.features import (
    ELR_VERSION,
    METADATA_VERSION,
    MetadataVersion,
    UnsupportedFeatureError,
    check_finalized,
)
from barnabas.protocol.messages.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
)


class BootstrapError(ShownError, ValueError):
    """Bootstrap records without which, or with which, no cluster can start."""


def bootstrap_level(bootstrap: list[MetadataRecord]) -> MetadataVersion:
    """The metadata.version that the bootstrap records set.

    Raises BootstrapError if they set none, or any feature to a level that cannot be run here.
    """
    levels = {
        record.message.name: record.message.feature_level
        for record in bootstrap
        if isinstance(record.message, FeatureLevelRecord)
    }
    if METADATA_VERSION not in levels:
        raise BootstrapError(f"the bootstrap records set no {METADATA_VERSION}")
    try:
        check_finalized(levels)
    except UnsupportedFeatureError as error:
        raise BootstrapError(f"the bootstrap records cannot be used: {error}") from error
    return MetadataVersion(levels[METADATA_VERSION])


def activation_records(
    state: ControllerState, bootstrap: list[MetadataRecord], transaction_offset: int
) -> list[MetadataRecord]:
    """The records with which this controller begins. Raises BootstrapError."""
    is_open = transaction_offset != NO_TRANSACTION
    abort = [MetadataRecord(AbortTransactionRecord(reason="Controller failover"))]
    if not state.image.is_empty:
        return abort if is_open else []
    level = bootstrap_level(bootstrap)
    records = list(bootstrap)
    if any(_sets_elr(record) for record in bootstrap):
        records += elr_safety_records(state)
    if not level.has_transactions:
        return records
    return [
        *(abort if is_open else []),
        MetadataRecord(BeginTransactionRecord(name="Bootstrap records")),
        *records,
        MetadataRecord(EndTransactionRecord()),
    ]


def _sets_elr(record: MetadataRecord) -> bool:
    message = record.message
    return (
        isinstance(message, FeatureLevelRecord)
        and message.name == ELR_VERSION
        and message.feature_level >= 1
    )
