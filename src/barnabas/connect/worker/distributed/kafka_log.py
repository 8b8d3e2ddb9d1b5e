"""The topics that the workers of a group share: as their settings name them, and on the cluster.

All three are compacted. Each worker reads all of them, always, on a thread of the log's own:
`kafka.topic_log` in the worker's words.

Source: org.apache.kafka.connect.util.TopicAdmin and DistributedConfig (Kafka 4.3).
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final, Literal

from barnabas.connect.config.values import ConfigType, invalid, missing, parse_value, with_prefix
from barnabas.connect.worker.distributed.clients import Clients
from barnabas.kafka.fenced_writer import Pair
from barnabas.kafka.planned_topics import TopicLogError, TopicPlan
from barnabas.kafka.topic_log import LogTimeoutError, Take, TopicLog
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
_COMPACT: Final = "compact"
_COUNTS: Final = {
    "partitions": ("Number of partitions", ConfigType.INT, ""),
    "replication.factor": (
        "Replication factor",
        ConfigType.SHORT,
        " and not larger than the number of brokers in the Kafka cluster",
    ),
}
WRITE_S: Final = 30.0


@dataclass(slots=True, frozen=True)
class WorkerTopic(TopicPlan):
    """A topic as the worker wants it; `setting` names it in the worker's file."""

    setting: str = ""
    purpose: str = ""


def topic_plan(settings: Mapping[str, str], kind: Kind) -> WorkerTopic:
    """Read `config.storage.*`, `offset.storage.*` or `status.storage.*`. Raises ConfigError."""
    prefix = f"{kind}.storage."
    own = with_prefix(settings, prefix)
    name = own.pop("topic", "").strip()
    if not name:
        raise missing(f"{prefix}topic")
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
    what, kind, more = _COUNTS[name]
    count: int = parse_value(prefix + name, own.pop(name, str(default)), kind)
    if count == 0 or count < -1:
        text = f"{what} must be positive{more}, or -1 to use the broker's default"
        raise invalid(prefix + name, count, text)
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


class ReadTimeoutError(ConnectError):
    """The end of the topic was not reached in time."""

    java_name = "java.util.concurrent.TimeoutException"


@contextlib.contextmanager
def as_connect_errors() -> Iterator[None]:
    """Raise ConnectError for what is wrong with a topic."""
    try:
        yield
    except LogTimeoutError as error:
        raise ReadTimeoutError(str(error)) from error
    except TopicLogError as error:
        raise ConnectError(str(error)) from error


class WorkerLog:
    """One topic of a worker."""

    def __init__(
        self, clients: Clients, plan: WorkerTopic, take: Take, *, is_committed_only: bool = False
    ) -> None:
        self.name = plan.name
        self._plan = plan
        self._log = TopicLog(
            clients.named(plan.name),
            plan.name,
            take,
            follows=True,
            is_committed_only=is_committed_only,
            reads_again=True,
        )

    @property
    def partitions(self) -> int:
        """The number of the topic's partitions."""
        return self._log.partitions

    def start(self, timeout_s: float = 60.0) -> None:
        """Make or check the topic and read it to its end. Raises ConfigError, ConnectError."""
        try:
            with as_connect_errors():
                self._log.open(
                    self._plan, timeout_s, check=lambda config: check_policy(self._plan, config)
                )
                self._log.read_to_end(timeout_s)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End; what is not written by now may be lost."""
        self._log.close()

    def refresh(self, timeout_s: float) -> None:
        """Wait until all that is in the topic now is read. Raises ReadTimeoutError."""
        with as_connect_errors():
            self._log.read_to_end(timeout_s)

    def flush(self) -> None:
        """Wait until what was sent is written. Raises ReadTimeoutError."""
        with as_connect_errors():
            self._log.flush()

    def send(self, key: bytes | str, value: bytes | None) -> Future[None]:
        """Write a record, some time."""
        return self._log.send(key, value)

    def write(self, pairs: Sequence[Pair], late: str, timeout_s: float = WRITE_S) -> None:
        """Write records and wait for that; ConnectError says `late` where it takes too long."""
        sent = [self._log.send(key, value) for key, value in pairs]
        try:
            with as_connect_errors():
                for one in sent:
                    one.result(timeout_s)
        except TimeoutError as error:
            raise ConnectError(late) from error

    @property
    def leads(self) -> bool:
        """True if this worker has taken the right to write in transactions."""
        return self._log.leads

    def lead(self, transactional_id: str) -> None:
        """Fence the workers that led before. Raises TopicLogError."""
        self._log.lead(transactional_id, WRITE_S)

    def append(self, pairs: Sequence[Pair]) -> None:
        """Write records in one transaction. Raises TopicLogError."""
        self._log.append(pairs, WRITE_S)
