"""What a controller that becomes active writes first.

Into an empty log: the bootstrap records that `storage format` left, in one metadata transaction.
Into one that was left with an open transaction: its abortion.
Source: Kafka's ActivationRecordsGenerator.
"""

from barnabas.metadata.controller.config_changes import elr_safety_records
from barnabas.metadata.controller.decision import ControllerState
from barnabas.metadata.features import ELR_VERSION, METADATA_VERSION, MetadataVersion
from barnabas.metadata.loader import NO_TRANSACTION
from barnabas.metadata.records import MetadataRecord
from barnabas.protocol.messages.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
)


class BootstrapError(ValueError):
    """Bootstrap records without which, or with which, no cluster can start."""


def bootstrap_level(bootstrap: list[MetadataRecord]) -> MetadataVersion:
    """The metadata.version that the bootstrap records set.

    Raises BootstrapError if they set none, or one that this node cannot run.
    """
    level = None
    for record in bootstrap:
        message = record.message
        if isinstance(message, FeatureLevelRecord) and message.name == METADATA_VERSION:
            level = message.feature_level
    if level is None:
        raise BootstrapError(f"the bootstrap records set no {METADATA_VERSION}")
    try:
        return MetadataVersion(level)
    except ValueError as error:
        raise BootstrapError(
            f"the bootstrap records set {METADATA_VERSION}={level}, which is not supported here"
        ) from error


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
