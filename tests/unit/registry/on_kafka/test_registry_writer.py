"""A reign against brokers that are played: what is answered when transactions succeed and fail."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import KafkaConnectionError, KafkaError, ProducerFenced

from barnabas.registry import errors
from barnabas.registry.core.decision import Decision, View
from barnabas.registry.core.deletion import delete_subject
from barnabas.registry.core.registration import register
from barnabas.registry.core.requests import SchemaRequest
from barnabas.registry.errors import RegistryError
from barnabas.registry.kafka import writer
from barnabas.registry.kafka.connection import Connection
from barnabas.registry.kafka.reader import TopicReader
from barnabas.registry.kafka.replica import Replica
from barnabas.registry.kafka.topic import TopicFacts
from barnabas.registry.kafka.writer import Reign
from barnabas.registry.service import Done
from barnabas.registry.store.records import SchemaValue
from support.registry_format import PlainFormats, text
from support.registry_member import store_config


@dataclass
class Brokers:
    """The topic, and the one producer that writes to it."""

    log: list[tuple[bytes, bytes | None]] = field(default_factory=list)
    pending: list[tuple[bytes, bytes | None]] = field(default_factory=list)
    transactions: int = 0
    hold: asyncio.Event = field(default_factory=asyncio.Event)
    """Commits wait for it."""
    send_fault: KafkaError | None = None
    commit_fault: KafkaError | None = None

    async def start(self) -> None:
        if isinstance(self.commit_fault, KafkaConnectionError):
            raise self.commit_fault

    async def stop(self) -> None:
        """Nothing."""

    async def begin_transaction(self) -> None:
        assert not self.pending

    async def send(
        self, topic: str, value: bytes | None, key: bytes, partition: int
    ) -> asyncio.Future[Any]:
        answer = asyncio.get_running_loop().create_future()
        if self.send_fault is not None:
            answer.set_exception(self.send_fault)
            return answer
        answer.set_result(SimpleNamespace(offset=len(self.log) + len(self.pending)))
        self.pending.append((key, value))
        return answer

    async def commit_transaction(self) -> None:
        await self.hold.wait()
        if self.commit_fault is not None:
            raise self.commit_fault
        self.log += self.pending
        self.pending = []
        self.transactions += 1


class Reading(TopicReader):
    """Reads the log of the brokers when it is told to."""

    def __init__(self, connection: Connection, brokers: Brokers, replica: Replica) -> None:
        super().__init__(connection, "t", self.apply_one)
        self.brokers = brokers
        self.replica = replica
        self.reign: Reign | None = None

    def apply_one(self, offset: int, timestamp_ms: int, key: Any, value: Any) -> None:
        found = self.replica.apply(offset, timestamp_ms, key, value)
        if self.reign is not None:
            self.reign.note_read(offset, changes=found is not None)

    async def log_end(self) -> int:
        return len(self.brokers.log)

    def read(self) -> None:
        while self.position < len(self.brokers.log):
            self.apply_one(self.position, 0, *self.brokers.log[self.position])
            self.position += 1
        self._wake()


@dataclass
class Play:
    brokers: Brokers
    reader: Reading
    replica: Replica
    reign: Reign

    def register(self, schema: str) -> asyncio.Task[Done[SchemaValue]]:
        return asyncio.create_task(
            self.reign.submit(lambda view: register(view, "s", SchemaRequest(schema)))
        )

    async def settle(self, condition: Callable[[], bool] = lambda: False) -> None:
        """Let all tasks go as far as they can."""
        for _ in range(50):
            if condition():
                return
            await asyncio.sleep(0)

    async def settle_when(self, condition: Callable[[], bool]) -> None:
        """Wait for what a thread has a part in."""
        while not condition():  # noqa: ASYNC110 - a thread sets no event of asyncio's
            await asyncio.sleep(0.001)


@pytest.fixture
async def play(monkeypatch: pytest.MonkeyPatch) -> Play:
    brokers = Brokers()
    brokers.hold.set()
    monkeypatch.setattr(writer, "AIOKafkaProducer", lambda **options: brokers)
    config = store_config("h:1", "t", 1)
    connection = Connection(config)
    replica = Replica()
    reader = Reading(connection, brokers, replica)
    reign = Reign(config, connection, TopicFacts("", 20_000), reader, replica, PlainFormats())
    reader.reign = reign
    await reign.begin()
    return Play(brokers, reader, replica, reign)


async def refused(task: asyncio.Task[Any]) -> RegistryError:
    with pytest.raises(RegistryError) as caught:
        await task
    return caught.value


async def test_it_answers_when_its_own_reader_has_the_record(play: Play) -> None:
    first = play.register(text("a"))
    await play.settle()
    assert play.brokers.transactions == 1
    assert not first.done()
    play.reader.read()
    done = await first
    assert (done.response.id, done.offset) == (1, 0)
    assert [value.id for value in play.replica.state.versions("s")] == [1]
    again = await play.register(text("a"))
    assert (again.response.id, again.offset, play.brokers.transactions) == (1, 0, 1)


async def test_requests_gather_while_a_transaction_is_under_way(play: Play) -> None:
    play.brokers.hold.clear()
    first = play.register(text("a"))
    await play.settle()
    others = [play.register(text(name)) for name in "bcab"]
    await play.settle()
    play.brokers.hold.set()
    await play.settle()
    play.reader.read()
    assert (await first).response.id == 1
    assert [(await task).response.id for task in others] == [2, 3, 1, 2]
    assert play.brokers.transactions == 2
    await play.reign.close()


async def test_what_was_found_among_the_uncommitted_is_answered_with_it(play: Play) -> None:
    play.brokers.hold.clear()
    first, again = play.register(text("a")), play.register(text("a"))
    await play.settle()
    play.brokers.commit_fault = ProducerFenced()
    play.brokers.hold.set()
    for task in (first, again):
        error = await refused(task)
        assert error.code == errors.STORE_ERROR
        assert "another instance has taken over" in error.message
    assert play.reign.ended.result() == "another instance has taken over"
    assert not play.reign.is_open
    await play.reign.close()


async def test_a_refusal_that_rests_on_the_uncommitted_waits(play: Play) -> None:
    value = play.register(text("a"))
    await play.settle()
    play.reader.read()
    await value
    play.brokers.hold.clear()

    async def delete() -> None:
        await play.reign.submit(lambda view: delete_subject(view, "s"))

    first = asyncio.create_task(delete())
    second = asyncio.create_task(delete())
    await play.settle()
    assert not second.done()
    play.brokers.hold.set()
    await play.settle()
    play.reader.read()
    await first
    assert (await refused(second)).code == errors.SUBJECT_SOFT_DELETED
    await play.reign.close()


async def test_a_record_that_was_not_written_is_not_committed(play: Play) -> None:
    play.brokers.send_fault = KafkaError("no")
    assert (await refused(play.register(text("a")))).code == errors.STORE_ERROR
    assert play.brokers.transactions == 0
    assert play.reign.ended.done()
    await play.reign.close()


async def test_a_record_of_somebody_else_ends_the_reign(play: Play) -> None:
    own = play.register(text("a"))
    await play.settle()
    play.reader.read()
    await own
    assert play.reign.is_open
    play.brokers.log.append((b'{"keytype":"NOOP","magic":0}', None))
    play.reader.read()
    assert play.reign.is_open
    play.brokers.log.append((b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}', None))
    play.reader.read()
    assert play.reign.ended.result() == "somebody else has written to the topic, at offset 2"
    await play.reign.close()


async def test_no_transaction_begins_while_it_is_paused(play: Play) -> None:
    await play.reign.pause()
    first = play.register(text("a"))
    await play.settle()
    assert (play.brokers.transactions, play.brokers.pending) == (0, [])
    play.reign.resume()
    await play.settle()
    play.reader.read()
    assert (await first).response.id == 1
    await play.reign.close()


async def test_the_end_of_a_reign_answers_who_waits(play: Play) -> None:
    play.brokers.hold.clear()
    first = play.register(text("a"))
    await play.settle()
    second = play.register(text("b"))
    await play.settle()
    play.reign.end("enough")
    for task in (first, second):
        assert (await refused(task)).message == (
            "the write may not have been stored; try it again (enough)"
        )
    await play.reign.finish()
    await play.reign.close()


async def test_what_is_committed_is_answered_after_the_end_too(play: Play) -> None:
    first = play.register(text("a"))
    await play.settle(lambda: play.brokers.transactions == 1)
    await play.settle()
    play.reign.end("enough")
    play.reader.read()
    assert (await first).response.id == 1
    await play.reign.close()


async def test_one_that_gives_up_does_not_hinder_the_others(play: Play) -> None:
    play.brokers.hold.clear()
    first, second = play.register(text("a")), play.register(text("b"))
    await play.settle()
    first.cancel()
    play.brokers.hold.set()
    await play.settle()
    play.reader.read()
    assert (await second).response.id == 2
    await play.reign.finish()
    await play.reign.close()


async def test_a_schema_that_is_too_large_leaves_no_trace(play: Play) -> None:
    error = await refused(play.register(text("x" * 20_000)))
    assert error.code == errors.SCHEMA_TOO_LARGE
    assert "max.message.bytes" in error.message
    first = play.register(text("a"))
    await play.settle()
    play.reader.read()
    assert (await first).response.id == 1
    await play.reign.close()


async def test_too_many_waiting_are_refused(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "WAITING_MAX", 2)
    play.brokers.hold.clear()
    tasks = [play.register(text("a"))]
    await play.settle()
    tasks += [play.register(text(name)) for name in "bcd"]
    await play.settle()
    assert "too many writes wait" in (await refused(tasks.pop())).message
    play.brokers.hold.set()
    await play.settle()
    play.reader.read()
    assert [(await task).response.id for task in tasks] == [1, 2, 3]
    await play.reign.close()


async def test_decisions_wait_for_a_large_one_and_see_what_it_did(play: Play) -> None:
    let, threads = threading.Event(), []

    def decide(view: View) -> Decision[SchemaValue]:
        threads.append(threading.current_thread() is threading.main_thread())
        assert let.wait(30)
        return register(view, "s", SchemaRequest(text("a")))

    large = asyncio.create_task(play.reign.submit(decide, is_large=True))
    await play.settle_when(lambda: bool(threads))
    same, other = play.register(text("a")), play.register(text("b"))
    await play.settle()
    assert not same.done()
    assert not other.done()
    let.set()
    await play.settle_when(lambda: len(play.brokers.log) >= 2)
    play.reader.read()
    assert [(await task).response.id for task in (large, same, other)] == [1, 1, 2]
    assert threads == [False]


async def test_a_large_decision_of_a_reign_that_is_over_is_dropped(play: Play) -> None:
    let, began = threading.Event(), threading.Event()

    def decide(view: View) -> Decision[SchemaValue]:
        began.set()
        assert let.wait(30)
        return register(view, "s", SchemaRequest(text("a")))

    large = asyncio.create_task(play.reign.submit(decide, is_large=True))
    after = play.register(text("b"))
    await play.settle_when(began.is_set)
    play.reign.end("another instance leads")
    let.set()
    for task in (large, after):
        assert (await refused(task)).code == errors.STORE_ERROR
    assert play.brokers.log == []
