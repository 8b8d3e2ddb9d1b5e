"""The three topics of a group of workers, as its settings name them: all are compacted.

Source: org.apache.kafka.connect.util.TopicAdmin and DistributedConfig (Kafka 4.3).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from barnabas.kafka.planned_topics import TopicPlan
from barnabas.schemas.data.errors import ConfigError

_log = logging.getLogger(__name__)
Kind = Literal["config", "offset", "status"]
PURPOSES: Final[dict[Kind, str]] = {
    "config": "connector configurations",
    "offset": "source connector offsets",
    "status": "connector and task statuses",
}
_PARTITIONS: Final[dict[Kind, int]] = {"config": 1, "offset": 25, "status": 5}
_REPLICAS: Final = 3
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
class WorkerTopic(TopicPlan):
    """A topic as the worker wants it; `setting` names it in the worker's file."""

    setting: str = ""
    purpose: str = ""


def topic_plan(settings: Mapping[str, str], kind: Kind) -> WorkerTopic:
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
    config = {**own, "cleanup.policy": _COMPACT}
    return WorkerTopic(name, partitions, replicas, config, f"{prefix}topic", PURPOSES[kind])


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


def check_policy(plan: WorkerTopic, config: Mapping[str, str]) -> None:
    """Raise ConfigError where the topic is not compacted."""
    policies = {part.strip().lower() for part in config.get("cleanup.policy", "").split(",")}
    if policies not in ({_COMPACT}, {""}):
        raise ConfigError(
            f"Topic '{plan.name}' supplied via the '{plan.setting}' property is required to have "
            f"'cleanup.policy=compact' to guarantee consistency and durability of {plan.purpose}, "
            f"but found the topic currently has 'cleanup.policy={','.join(sorted(policies))}'. "
            f"Continuing would likely result in eventually losing {plan.purpose} and problems "
            f"restarting this Connect cluster in the future. Change the '{plan.setting}' property "
            "in the Connect worker configurations to use a topic with 'cleanup.policy=compact'."
        )
