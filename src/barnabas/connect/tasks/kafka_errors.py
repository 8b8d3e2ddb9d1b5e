"""Which errors of Kafka pass by themselves.

`KafkaError.retriable()` says so of transactional calls alone: it is false for every answer of a
broker. Source: RetriableException and what extends it (Kafka 4.3).
"""

from __future__ import annotations

from typing import Final

from confluent_kafka import KafkaError, KafkaException

from barnabas.schemas.data.errors import ConnectError, RetriableError

_PASSING: Final = frozenset(
    {
        # Of librdkafka itself.
        *(KafkaError._ALL_BROKERS_DOWN, KafkaError._RESOLVE, KafkaError._TIMED_OUT),
        KafkaError._DESTROY_BROKER,
        *(KafkaError._TIMED_OUT_QUEUE, KafkaError._TRANSPORT, KafkaError._WAIT_COORD),
        *(KafkaError._UNKNOWN_PARTITION, KafkaError._UNKNOWN_TOPIC),
        # Of brokers that lead no more, or do not yet.
        *(KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.LEADER_NOT_AVAILABLE),
        *(KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.REPLICA_NOT_AVAILABLE),
        *(KafkaError.FENCED_LEADER_EPOCH, KafkaError.UNKNOWN_LEADER_EPOCH),
        *(KafkaError.OFFSET_NOT_AVAILABLE, KafkaError.LISTENER_NOT_FOUND),
        *(KafkaError.PREFERRED_LEADER_NOT_AVAILABLE, KafkaError.ELIGIBLE_LEADERS_NOT_AVAILABLE),
        *(KafkaError.UNKNOWN_TOPIC_ID, KafkaError.INCONSISTENT_TOPIC_ID),
        # Of coordinators and controllers that move.
        *(KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.COORDINATOR_NOT_AVAILABLE),
        *(KafkaError.NOT_COORDINATOR, KafkaError.NOT_CONTROLLER),
        *(KafkaError.CONCURRENT_TRANSACTIONS, KafkaError.UNSTABLE_OFFSET_COMMIT),
        # Of the disk, of replicas that are behind, of too much at once.
        *(KafkaError.REQUEST_TIMED_OUT, KafkaError.NETWORK_EXCEPTION),
        *(KafkaError.NOT_ENOUGH_REPLICAS, KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND),
        *(KafkaError.INVALID_MSG, KafkaError.KAFKA_STORAGE_ERROR),
        *(KafkaError.FETCH_SESSION_ID_NOT_FOUND, KafkaError.INVALID_FETCH_SESSION_EPOCH),
        KafkaError.THROTTLING_QUOTA_EXCEEDED,
    }
)


def is_passing(error: KafkaError) -> bool:
    """Return whether it is worth trying again."""
    return not error.fatal() and (error.retriable() or error.code() in _PASSING)


def as_connect_error(what: str, error: KafkaException) -> ConnectError:
    """Return RetriableError for what passes, else ConnectError."""
    reason = error.args[0]
    text = f"{what}: {reason.str()}"
    return RetriableError(text) if is_passing(reason) else ConnectError(text)
