"""A topic that the workers of a group share: `kafka.topic_log` in the worker's words.

Each worker reads all of it, always, on a thread of the log's own.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from typing import Final

from barnabas.connect.worker.distributed.clients import Clients
from barnabas.connect.worker.distributed.topics import WorkerTopic, check_policy
from barnabas.kafka.fenced_writer import Pair
from barnabas.kafka.planned_topics import TopicLogError
from barnabas.kafka.topic_log import LogTimeoutError, Take, TopicLog
from barnabas.schemas.data.errors import ConnectError

WRITE_S: Final = 30.0


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
