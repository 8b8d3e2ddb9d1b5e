"""A reign against brokers that are played: what is answered when transactions succeed and fail."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass
from typing import Any

import pytest
from aiokafka.errors import KafkaError, ProducerFenced, TopicAuthorizationFailedError

from barnabas.registry import errors
from barnabas.registry.core.decision import Decision, View
from barnabas.registry.core.deletion import delete_subject
from barnabas.registry.core.registration import register
from barnabas.registry.core.requests import SchemaRequest
from barnabas.registry.errors import RegistryError
from barnabas.registry.kafka import writer
from barnabas.registry.kafka.batch import NotStoredError
from barnabas.registry.kafka.connection import Connection
from barnabas.registry.kafka.replica import Replica
from barnabas.registry.kafka.topic import TopicFacts
from barnabas.registry.kafka.writer import Reign
from barnabas.registry.service import Done
from barnabas.registry.store.records import SchemaValue
from support.eventually import eventually
from support.registry_brokers import Brokers, Reading, settle
from support.registry_format import PlainFormats, text
from support.registry_member import store_config


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


@pytest.fixture
async def play(monkeypatch: pytest.MonkeyPatch) -> Play:
    brokers = Brokers()
    monkeypatch.setattr(writer, "AIOKafkaProducer", lambda **options: brokers)
    config = store_config("h:1", "t", 1)
    connection = Connection(config)
    replica = Replica()

    def apply(offset: int, timestamp_ms: int, key: bytes | None, value: bytes | None) -> None:
        if replica.apply(offset, timestamp_ms, key, value) is not None:
            reign.note_other(offset)

    reader = Reading(connection, brokers, apply)
    reign = Reign(config, connection, TopicFacts("", 20_000), reader, replica, PlainFormats())
    await reign.begin()
    return Play(brokers, reader, replica, reign)


async def interrupted(task: asyncio.Task[Any]) -> str:
    with pytest.raises(NotStoredError) as caught:
        await task
    return str(caught.value)


async def refused(task: asyncio.Task[Any]) -> RegistryError:
    with pytest.raises(RegistryError) as caught:
        await task
    return caught.value


async def test_it_answers_when_its_own_reader_has_the_record(play: Play) -> None:
    first = play.register(text("a"))
    await settle()
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
    await settle()
    others = [play.register(text(name)) for name in "bcab"]
    await settle()
    play.brokers.hold.set()
    await settle()
    play.reader.read()
    assert (await first).response.id == 1
    assert [(await task).response.id for task in others] == [2, 3, 1, 2]
    assert play.brokers.transactions == 2
    await play.reign.close()


async def test_what_was_found_among_the_uncommitted_is_answered_with_it(play: Play) -> None:
    play.brokers.hold.clear()
    first, again = play.register(text("a")), play.register(text("a"))
    await settle()
    play.brokers.commit_fault = ProducerFenced()
    play.brokers.hold.set()
    await settle()
    assert not first.done()
    await play.brokers.start()
    play.reader.read()
    for task in (first, again):
        assert await interrupted(task) == "another instance has taken over"
    assert play.reign.ended.result() == "another instance has taken over"
    assert not play.reign.is_open
    await play.reign.close()


async def test_a_refusal_that_rests_on_the_uncommitted_waits(play: Play) -> None:
    value = play.register(text("a"))
    await settle()
    play.reader.read()
    await value
    play.brokers.hold.clear()

    async def delete() -> None:
        await play.reign.submit(lambda view: delete_subject(view, "s"))

    first = asyncio.create_task(delete())
    second = asyncio.create_task(delete())
    await settle()
    assert not second.done()
    play.brokers.hold.set()
    await settle()
    play.reader.read()
    await first
    assert (await refused(second)).code == errors.SUBJECT_SOFT_DELETED
    await play.reign.close()


async def test_a_record_that_was_not_written_is_not_committed(play: Play) -> None:
    play.brokers.send_fault = KafkaError("no")
    assert "no" in await interrupted(play.register(text("a")))
    assert play.brokers.transactions == 0
    assert play.reign.ended.done()
    await play.reign.close()


async def test_a_record_that_brokers_refuse_is_not_tried_again(play: Play) -> None:
    play.brokers.send_fault = TopicAuthorizationFailedError()
    error = await refused(play.register(text("a")))
    assert error.code == errors.STORE_ERROR
    assert "allow Read, Write" in error.message
    assert play.reign.ended.done()
    await play.reign.close()


async def test_a_commit_whose_answer_is_lost_is_answered_by_what_the_reader_finds(
    play: Play,
) -> None:
    play.brokers.commit_fault = KafkaError("lost")
    play.brokers.stores_in_spite = True
    first, again = play.register(text("a")), play.register(text("a"))
    await settle(play.reign.ended.done)
    await play.reign.close()
    assert not first.done()
    play.reader.read()
    assert ((await first).response.id, (await first).offset) == (1, 0)
    assert (await again).response.id == 1


async def test_another_record_at_the_offset_is_not_taken_for_ours(play: Play) -> None:
    play.brokers.commit_fault = KafkaError("lost")
    first = play.register(text("a"))
    await settle(play.reign.ended.done)
    play.brokers.log.append((b'{"keytype":"SCHEMA","subject":"x","version":1,"magic":1}', None))
    play.reader.read()
    assert "lost" in await interrupted(first)
    await play.reign.close()


async def test_the_committed_state_takes_the_texts_of_the_speculative_one(play: Play) -> None:
    first = play.register(text("a"))
    await settle()
    play.reader.read()
    await first
    (committed,) = play.replica.state.versions("s")
    again = (await play.register(text("a"))).response
    assert again.text is committed.text
    assert (committed.timestamp_ms, again.subject is committed.subject) == (0, True)
    await play.reign.close()


async def test_both_states_share_their_tables_when_nothing_is_under_way(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "RENEWED_AFTER", 2)

    async def is_shared_after(name: str) -> bool:
        task = play.register(text(name))
        await settle()
        assert len(play.replica.state.versions("s")) < len(play.reign._speculative.versions("s"))
        play.reader.read()
        await task
        return play.reign._speculative._versions("s") is play.replica.state._versions("s")

    assert [await is_shared_after(name) for name in "abcd"] == [False, True, False, True]
    assert play.reign._speculative == play.replica.state
    await play.reign.close()


async def test_a_record_of_somebody_else_ends_the_reign(play: Play) -> None:
    own = play.register(text("a"))
    await settle()
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
    await settle()
    assert (play.brokers.transactions, play.brokers.pending) == (0, [])
    play.reign.resume()
    await settle()
    play.reader.read()
    assert (await first).response.id == 1
    await play.reign.close()


async def test_the_end_of_a_reign_answers_who_waits(play: Play) -> None:
    play.brokers.hold.clear()
    first = play.register(text("a"))
    await settle()
    second = play.register(text("b"))
    await settle()
    play.reign.end("enough")
    assert await interrupted(second) == "enough"
    assert not first.done()
    await play.reign.finish()
    await play.brokers.start()
    play.reader.read()
    assert await interrupted(first) == "enough"
    await play.reign.close()


async def test_what_is_committed_is_answered_after_the_end_too(play: Play) -> None:
    first = play.register(text("a"))
    await settle(lambda: play.brokers.transactions == 1)
    await settle()
    play.reign.end("enough")
    play.reader.read()
    assert (await first).response.id == 1
    await play.reign.close()


async def test_one_that_gives_up_does_not_hinder_the_others(play: Play) -> None:
    play.brokers.hold.clear()
    first, second = play.register(text("a")), play.register(text("b"))
    await settle()
    first.cancel()
    play.brokers.hold.set()
    await settle()
    play.reader.read()
    assert (await second).response.id == 2
    await play.reign.finish()
    await play.reign.close()


async def test_a_schema_that_is_too_large_leaves_no_trace(play: Play) -> None:
    error = await refused(play.register(text("x" * 20_000)))
    assert error.code == errors.SCHEMA_TOO_LARGE
    assert "max.message.bytes" in error.message
    first = play.register(text("a"))
    await settle()
    play.reader.read()
    assert (await first).response.id == 1
    await play.reign.close()


async def test_too_many_waiting_are_refused(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "WAITING_MAX", 2)
    play.brokers.hold.clear()
    tasks = [play.register(text("a"))]
    await settle()
    tasks += [play.register(text(name)) for name in "bcd"]
    await settle()
    assert "too many writes are waiting" in (await refused(tasks.pop())).message
    play.brokers.hold.set()
    await settle()
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
    await eventually(lambda: bool(threads), "a thread works")
    same, other = play.register(text("a")), play.register(text("b"))
    await settle()
    assert not same.done()
    assert not other.done()
    let.set()
    await eventually(lambda: len(play.brokers.log) >= 2, "both records are written")
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
    await eventually(began.is_set, "the thread began")
    play.reign.end("another instance leads")
    let.set()
    for task in (large, after):
        assert await interrupted(task) == "another instance leads"
    assert play.brokers.log == []
