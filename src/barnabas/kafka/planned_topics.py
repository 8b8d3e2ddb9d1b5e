"""Creates topics that are missing, as a `TopicPlan` says."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import NewTopic

from barnabas.kafka.admin import REQUEST_S, Admin, answer_of

PAUSE_S: Final = 0.2
DENIED: Final = (
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
)
_NOT_YET: Final = (
    KafkaError.INVALID_REPLICATION_FACTOR,  # brokers are still to come
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError._TIMED_OUT,
    KafkaError._TRANSPORT,
    KafkaError.NOT_CONTROLLER,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
)
_log = logging.getLogger(__name__)


class TopicLogError(Exception):
    """The topic cannot be created, read or written. `error` is the client's, or a substitute."""

    def __init__(self, text: str, error: KafkaError | None = None) -> None:
        super().__init__(text)
        self.error = error or KafkaError(KafkaError._FAIL, text)


class TopicCreationError(TopicLogError):
    """The brokers refuse to create the topic; `error` says why."""


@dataclass(slots=True, frozen=True)
class TopicPlan:
    """A topic to create if it is missing; -1 leaves a number to the brokers."""

    name: str
    partitions: int = 1
    replicas: int = -1
    config: Mapping[str, str] = field(default_factory=dict)


def create(admin: Admin, plan: TopicPlan, deadline: float) -> KafkaError | None:
    """Make a topic if it is not there.

    Returns None if it was created, else why not: it exists, or rights are missing, and then it may
    exist or not. Raises TopicCreationError.
    """
    wanted = NewTopic(
        plan.name,
        num_partitions=plan.partitions,
        replication_factor=plan.replicas,
        config=dict(plan.config),
    )
    told = ""
    while True:
        try:
            answer_of(admin.client.create_topics([wanted], request_timeout=REQUEST_S)[plan.name])
        except KafkaException as problem:
            error = problem.args[0]
            if error.code() == KafkaError.TOPIC_ALREADY_EXISTS or error.code() in DENIED:
                return KafkaError(error.code(), error.str())
            if time.monotonic() > deadline or error.code() not in _NOT_YET:
                raise TopicCreationError(
                    f"Unable to create topic(s) '{plan.name}': {error.str()}", error
                ) from problem
            if error.str() != told:  # which is tried again several times a second
                told = error.str()
                _log.warning("topic %s cannot be created yet: %s", plan.name, told)
            time.sleep(PAUSE_S)
        else:
            _log.info("topic %s is created", plan.name)
            return None


def wait_until_led(
    admin: Admin, topic: str, deadline: float, refusal: KafkaError | None = None
) -> int:
    """Wait until all partitions have leaders: brokers learn of a new topic a moment later.

    Returns how many there are. Raises TopicLogError, with `refusal` as the reason if that was a
    missing right.
    """
    problem, error = "it is not there", None
    while True:
        try:
            description = admin.description(topic)
        except KafkaException as failure:
            error = failure.args[0]
            problem = str(error.str())
        else:
            if description.partitions and all(
                part.leader is not None for part in description.partitions
            ):
                return len(description.partitions)
            problem = "a partition has no leader"
        if time.monotonic() > deadline:
            if refusal is not None and refusal.code() in DENIED:
                problem, error = refusal.str(), refusal
            raise TopicLogError(f"topic '{topic}' cannot be used: {problem}", error)
        time.sleep(PAUSE_S)
