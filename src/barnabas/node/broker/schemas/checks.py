"""Checks that the records of a batch name schemas that are registered under their subjects.

Null keys and null values (tombstones) need none, as in Confluent Server. One bad record refuses its
whole batch; the answer names the records.
"""

from collections.abc import Iterator
from typing import Final

from barnabas.node.broker.schemas.known_schemas import KnownSchemas
from barnabas.node.broker.schemas.named_schemas import IDENTITIES_MAX, NamedSchemas
from barnabas.node.broker.schemas.registry import RECORD_NAME_STRATEGY, Claim
from barnabas.node.broker.schemas.wire_format import (
    NO_IDENTITY,
    Identities,
    identities_of,
    scan_batch,
    schema_of,
)
from barnabas.node.log.config import TOPIC_NAME_STRATEGY, SchemaValidation
from barnabas.node.log.validator import RECORD_ERRORS_MAX, RecordErrors, Rejection
from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.records.batch import (
    CODEC_MASK,
    HEADER_SIZE_BYTES,
    LOG_OVERHEAD_BYTES,
    BatchHeader,
    CorruptBatchError,
    check_crc,
    codec_of,
    read_header,
)
from barnabas.protocol.records.compression import decompress
from barnabas.protocol.records.records import RECORDS_PER_BATCH_MAX, decode_records

REFUSED: Final = "a record has no schema that is registered under its subject"
UNKNOWN_MAX: Final = 64
"""Claims of a batch that are asked at once: a batch of nonsense must not be one of questions."""


def check_batch(
    known: KnownSchemas, topic: str, validation: SchemaValidation, batch: memoryview
) -> Rejection | list[Claim] | None:
    """None: the schemas are as they must be; a list: these claims must be asked first.

    What is not a batch at all, fails its CRC or must not come from a client passes: the log refuses
    it, with its own reasons.
    """
    try:
        header = read_header(batch)
    except CorruptBatchError:
        return None
    count = header.record_count
    if (
        header.batch_length + LOG_OVERHEAD_BYTES != len(batch)
        or header.is_control
        or not 0 < count <= RECORDS_PER_BATCH_MAX
    ):
        return None
    try:
        identities = _identities(batch, header, validation)
        refused, unknown = _judge(known, topic, validation, identities)
        rejection = _rejection(batch, topic, validation, refused) if refused else None
    except (DecodeError, IndexError) as error:
        code = error.error if isinstance(error, CorruptBatchError) else ErrorCode.INVALID_RECORD
        rejection, unknown = Rejection(code, "the records of the batch cannot be read"), []
    if (rejection is not None or unknown) and not check_crc(batch, 0, header):
        return None
    return rejection or unknown or None


def judge_named(
    known: KnownSchemas, topic: str, validation: SchemaValidation, named: NamedSchemas
) -> Rejection | list[Claim] | None:
    """As `check_batch`, for a batch whose records were checked in steps."""
    if named.has_too_many:
        return Rejection(
            ErrorCode.INVALID_RECORD, f"the batch names more than {IDENTITIES_MAX} schemas"
        )
    identities = Identities(
        {identity for identity, is_key in named.places if is_key},
        {identity for identity, is_key in named.places if not is_key},
    )
    refused, unknown = _judge(known, topic, validation, identities)
    if not refused:
        return unknown or None
    reasons: dict[int, str | None] = {}
    for is_key, strategy in (True, validation.key_strategy), (False, validation.value_strategy):
        for identity in (one for one, is_one in refused if is_one is is_key):
            assert strategy is not None
            reason = _reason(topic, identity, strategy, is_key=is_key)
            for index in named.places[identity, is_key]:
                reasons.setdefault(index, reason)
    return Rejection(ErrorCode.INVALID_RECORD, REFUSED, sorted(reasons.items())[:RECORD_ERRORS_MAX])


def _identities(batch: memoryview, header: BatchHeader, validation: SchemaValidation) -> Identities:
    body = batch[HEADER_SIZE_BYTES:]
    data = decompress(codec_of(header.attributes), body) if header.attributes & CODEC_MASK else body
    keys, values = validation.key_strategy is not None, validation.value_strategy is not None
    identities = scan_batch(bytes(data), header.record_count, keys=keys, values=values)
    if identities is not None:
        return identities
    named = [identities_of(record) for record in decode_records(batch)]
    return Identities(
        {key for key, _ in named if key is not None} if keys else set(),
        {value for _, value in named if value is not None} if values else set(),
    )


def _judge(
    known: KnownSchemas, topic: str, validation: SchemaValidation, identities: Identities
) -> tuple[set[tuple[bytes, bool]], list[Claim]]:
    """The identities that are refused, each with whether it is a key's; and what is not known."""
    refused: set[tuple[bytes, bool]] = set()
    unknown: list[Claim] = []
    for identity, strategy, is_key in _each(identities, validation):
        if schema_of(identity) is None:
            refused.add((identity, is_key))
            continue
        claim = _claim(identity, strategy, topic, is_key=is_key)
        is_true = known.is_true(claim)
        if is_true is None:
            if len(unknown) < UNKNOWN_MAX:
                unknown.append(claim)
        elif not is_true:
            refused.add((identity, is_key))
    return refused, unknown


def _each(
    identities: Identities, validation: SchemaValidation
) -> Iterator[tuple[bytes, str, bool]]:
    if validation.key_strategy is not None:
        for identity in identities.keys:
            yield identity, validation.key_strategy, True
    if validation.value_strategy is not None:
        for identity in identities.values:
            yield identity, validation.value_strategy, False


def _claim(identity: bytes, strategy: str, topic: str, *, is_key: bool) -> Claim:
    """The claim, without what the subject does not depend on."""
    return Claim(
        identity,
        strategy,
        "" if strategy == RECORD_NAME_STRATEGY else topic,
        is_key and strategy == TOPIC_NAME_STRATEGY,
    )


def _rejection(
    batch: memoryview, topic: str, validation: SchemaValidation, refused: set[tuple[bytes, bool]]
) -> Rejection:
    """Say which records are refused, and why. Raises CorruptBatchError."""
    nameless = {(NO_IDENTITY, True), (NO_IDENTITY, False)}
    refused = refused | nameless
    errors: RecordErrors = []
    for index, record in enumerate(decode_records(batch)):
        key, value = identities_of(record)
        for identity, strategy, is_key in (
            (key, validation.key_strategy, True),
            (value, validation.value_strategy, False),
        ):
            if strategy is not None and identity is not None and (identity, is_key) in refused:
                errors.append((index, _reason(topic, identity, strategy, is_key=is_key)))
                break
        if len(errors) == RECORD_ERRORS_MAX:
            break
    return Rejection(ErrorCode.INVALID_RECORD, REFUSED, errors)


def _reason(topic: str, identity: bytes, strategy: str, *, is_key: bool) -> str:
    part = "key" if is_key else "value"
    schema = schema_of(identity)
    if schema is None:
        return f"the {part} names no schema: it does not begin with a magic byte and a schema id"
    subject = Claim(identity, strategy, topic, is_key).subject("<record name>")
    return f"the {part} names schema {schema}, which is not registered under {subject}"
