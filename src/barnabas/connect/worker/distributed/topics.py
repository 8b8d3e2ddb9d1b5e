"""The three topics of a group of workers: made compacted, or checked that they are.

Source: org.apache.kafka.connect.util.TopicAdmin and DistributedConfig (Kafka 4.3).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from barnabas.schemas.data.errors import ConfigError, ConnectError

_log = logging.getLogger(__name__)
Kind = Literal["config", "offset", "status"]
PURPOSES: Final[dict[Kind, str]] = {
    "config": "connector configurations",
    "offset": "source connector offsets",
    "status": "connector and task statuses",
}
_PARTITIONS: Final[dict[Kind, int]] = {"config": 1, "offset": 25, "status": 5}
_REPLICAS: Final = 3
_PAUSE_S: Final = 0.2
_REQUEST_S: Final = 10.0
_DENIED: Final = (
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
)
_COMPACT: Final = "compact"
_COUNTS: Final = {
    "partitions": ("Number of partitions", "INT", ""),
    "replication.factor": (
        "Replication factor",
        "SHORT",
        " and not larger than the number of brokers in the Kafka cluster",
    ),
}


@dataclass(slots=True, frozen=True)
class TopicPlan:
    """A topic as the worker wants it; `setting` names it in the worker's file."""

    name: str
    setting: str
    purpose: str
    partitions: int
    replicas: int
    config: Mapping[str, str] = field(default_factory=dict)


def topic_plan(settings: Mapping[str, str], kind: Kind) -> TopicPlan:
    """Read `config.storage.*`, `offset.storage.*` or `status.storage.*`. Raises ConfigError."""
    prefix = f"{kind}.storage."
    own = {n.removeprefix(prefix): v for n, v in settings.items() if n.startswith(prefix)}
    name = own.pop("topic", "").strip()
    if not name:
        raise ConfigError(
            f'Missing required configuration "{prefix}topic" which has no default value.'
        )
    policy = own.pop("cleanup.policy", None)
    if policy is not None:
        _log.warning("%scleanup.policy=%s is ignored: the topic is compacted", prefix, policy)
    partitions = _number(prefix, own, "partitions", _PARTITIONS[kind])
    if kind == "config" and partitions != 1:
        _log.warning("%spartitions=%d is ignored: it is always 1", prefix, partitions)
        partitions = 1
    replicas = _number(prefix, own, "replication.factor", _REPLICAS)
    return TopicPlan(name, f"{prefix}topic", PURPOSES[kind], partitions, replicas, own)


def _number(prefix: str, own: dict[str, str], name: str, default: int) -> int:
    """A count, or -1 for what the brokers take."""
    text = own.pop(name, str(default))
    what, kind, more = _COUNTS[name]
    start = f"Invalid value {text} for configuration {prefix}{name}: "
    try:
        count = int(text)
    except ValueError:
        raise ConfigError(f"{start}Not a number of type {kind}") from None
    if count == 0 or count < -1:
        raise ConfigError(
            f"{start}{what} must be positive{more}, or -1 to use the broker's default"
        )
    return count


def prepare(admin: AdminClient, plan: TopicPlan, timeout_s: float = 60.0) -> int:
    """Make the topic if it is not there, else check it; returns how many partitions it has.

    Raises ConfigError where it is not compacted, ConnectError where it can be neither made nor
    found in time.
    """
    deadline = time.monotonic() + timeout_s
    if not _create(admin, plan, deadline):
        _check_policy(admin, plan)
    return _wait(admin, plan, deadline)


def _create(admin: AdminClient, plan: TopicPlan, deadline: float) -> bool:
    """Whether it was made just now."""
    wanted = NewTopic(
        plan.name,
        num_partitions=plan.partitions,
        replication_factor=plan.replicas,
        config={**plan.config, "cleanup.policy": _COMPACT},
    )
    while True:
        try:
            admin.create_topics([wanted], request_timeout=_REQUEST_S)[plan.name].result()
        except KafkaException as problem:
            error = problem.args[0]
            if error.code() == KafkaError.TOPIC_ALREADY_EXISTS or error.code() in _DENIED:
                return False
            if time.monotonic() > deadline or error.code() not in (
                KafkaError.INVALID_REPLICATION_FACTOR,
                KafkaError.REQUEST_TIMED_OUT,
                KafkaError._TIMED_OUT,
                KafkaError._TRANSPORT,
                KafkaError.NOT_CONTROLLER,
                KafkaError.COORDINATOR_NOT_AVAILABLE,
            ):
                raise ConnectError(
                    f"Unable to create topic(s) '{plan.name}': {error.str()}"
                ) from problem
            _log.info("topic %s cannot be made yet: %s", plan.name, error.str())
            time.sleep(_PAUSE_S)
        else:
            _log.info("topic %s is made", plan.name)
            return True


def _check_policy(admin: AdminClient, plan: TopicPlan) -> None:
    resource = ConfigResource(ResourceType.TOPIC, plan.name)
    try:
        found: Any = admin.describe_configs([resource], request_timeout=_REQUEST_S)[
            resource
        ].result()
    except KafkaException as error:
        _log.info("whether topic %s is compacted cannot be asked: %s", plan.name, error)
        return
    entry = found.get("cleanup.policy")
    policies = {part.strip().lower() for part in str(entry.value if entry else "").split(",")}
    if policies not in ({_COMPACT}, {""}):
        raise ConfigError(
            f"Topic '{plan.name}' supplied via the '{plan.setting}' property is required to have "
            f"'cleanup.policy=compact' to guarantee consistency and durability of {plan.purpose}, "
            f"but found the topic currently has 'cleanup.policy={','.join(sorted(policies))}'. "
            f"Continuing would likely result in eventually losing {plan.purpose} and problems "
            f"restarting this Connect cluster in the future. Change the '{plan.setting}' property "
            "in the Connect worker configurations to use a topic with 'cleanup.policy=compact'."
        )


def _wait(admin: AdminClient, plan: TopicPlan, deadline: float) -> int:
    """Other brokers hear of a new topic a moment later."""
    problem = "it is not there"
    while time.monotonic() < deadline:
        try:
            topic = admin.list_topics(plan.name, timeout=_REQUEST_S).topics[plan.name]
        except KafkaException as error:
            problem = str(error.args[0].str())
        else:
            if topic.partitions and all(part.leader >= 0 for part in topic.partitions.values()):
                return len(topic.partitions)
            problem = topic.error.str() if topic.error else problem
        time.sleep(_PAUSE_S)
    raise ConnectError(f"topic '{plan.name}' cannot be used: {problem}")
