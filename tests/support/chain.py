"""Chains of processes that consume, transform and produce exactly once, and their one reader."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from support.chain_member import REFUSED, Silence

PROGRAM = Path(__file__).with_name("chain_member.py")
STALL_S = 90.0
CALL_TIMEOUT_S = 30.0


class Member:
    """One process of a stage; another takes its transactional id when it is killed."""

    def __init__(self, arguments: list[str], output: Path) -> None:
        self.arguments = arguments
        self.output = output
        self._start()

    def _start(self) -> None:
        with self.output.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, str(PROGRAM), *self.arguments], stdout=output, stderr=output
            )

    def replace(self) -> None:
        """SIGKILL, and a new process with the same transactional id."""
        self.kill()
        self._start()

    def revive(self) -> None:
        """Start it again if it has ended by itself: its client was stuck."""
        if self._process.poll() is not None:
            self._start()

    def pause(self) -> None:
        """SIGSTOP, in the middle of its work."""
        os.kill(self._process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT: it believes that no time has passed."""
        os.kill(self._process.pid, signal.SIGCONT)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


class Chain:
    """Stages one behind the other; `topics` are those between and around them."""

    def __init__(
        self, bootstrap: str, protocol: str, topics: list[str], members: int, directory: Path
    ) -> None:
        self.members = [
            Member(
                [bootstrap, protocol, f"to-{target}", f"{target}-{number}", source, target],
                directory / f"{target}-{number}.out",
            )
            for source, target in itertools.pairwise(topics)
            for number in range(members)
        ]

    def __enter__(self) -> Chain:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for member in self.members:
            member.kill()
        if error is None:
            said = [m.output.read_text(errors="replace") for m in self.members]
            refused = [line for text in said for line in text.splitlines() if REFUSED in line]
            assert not refused, "\n".join([*refused, self.said()])

    def revive(self) -> None:
        """Start those again that have ended by themselves."""
        for member in self.members:
            member.revive()

    def said(self) -> str:
        """The ends of what the members printed, for a failure's message."""
        return "\n".join(m.output.read_text(errors="replace")[-600:] for m in self.members)


class Reader:
    """Reads what is committed to a topic, each partition in its order."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "reader",
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "enable.auto.commit": False,
                "logger": Silence(),
            }
        )
        self._consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
        self.values: list[list[int]] = [[] for _ in range(partitions)]
        self._ended: set[int] = set()

    @property
    def count(self) -> int:
        return sum(map(len, self.values))

    def read_to(self, count: int, chain: Chain) -> None:
        """Read until so many records are there. Fails when none comes for long."""
        deadline = time.monotonic() + STALL_S
        while self.count < count:
            if self._poll():
                deadline = time.monotonic() + STALL_S
            chain.revive()
            assert time.monotonic() < deadline, f"{self.count} of {count}\n{chain.said()}"

    def read_rest(self) -> list[list[int]]:
        """Read to the end of each partition, for what should not be there."""
        deadline = time.monotonic() + STALL_S
        while self._poll() or len(self._ended) < len(self.values):
            assert time.monotonic() < deadline, self._ended
        self._consumer.close()
        return self.values

    def _poll(self) -> bool:
        """Take what there is; whether it was a record."""
        records = 0
        for message in self._consumer.consume(500, 0.2):
            error = message.error()
            if error is None:
                records += 1
                self.values[message.partition() or 0].append(int(message.value() or b""))
                self._ended.discard(message.partition() or 0)
            elif error.code() == KafkaError._PARTITION_EOF:
                self._ended.add(message.partition() or 0)
        return records > 0


def fill(bootstrap: str, topic: str, partitions: int, numbers: range) -> None:
    """Each number once, by turns to the partitions."""
    producer = Producer(
        {"bootstrap.servers": bootstrap, "enable.idempotence": True, "logger": Silence()}
    )
    for number in numbers:
        producer.produce(topic, str(number), partition=number % partitions)
    assert producer.flush(CALL_TIMEOUT_S) == 0


def expected(partitions: int, count: int) -> list[list[int]]:
    """Return what each partition of the last topic must hold, in this order."""
    return [list(range(index, count, partitions)) for index in range(partitions)]
