"""A store whose transactions fail: the leader decides the requests again by itself."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiokafka.errors import KafkaError, TopicAuthorizationFailedError

from barnabas.registry import errors
from barnabas.registry.core.deletion import delete_subject
from barnabas.registry.errors import RegistryError
from barnabas.registry.kafka import writer
from barnabas.registry.kafka.membership import Identity
from barnabas.registry.kafka.store import KafkaStore
from barnabas.registry.kafka.topic import TopicFacts
from barnabas.registry.service import Done, Forward
from support.registry_brokers import Brokers, Reading, settle
from support.registry_format import text
from support.registry_member import new_store, registered, registering

OTHER = Identity("other", 8081, "http", may_lead=True)


class Led:
    """A store for which the test decides who leads."""

    def __init__(self, **settings: str) -> None:
        self.brokers = Brokers()
        self.store = new_store("h:1", "t", 1, kafkastore_retry_backoff_ms="1", **settings)
        self.store._facts = TopicFacts("", 20_000)
        self.reader = Reading(self.store._connection, self.brokers, self.store._apply)
        self.reader.reads_at_once = True
        self.store._reader = self.reader

    def elect(self, leader: Identity | None = None) -> None:
        """This instance, or the one that is named."""
        own = self.store._identity
        self.store._elected(leader or own, leader is None)

    async def stop(self) -> None:
        await self.store._end_reigning("the test ends")


@pytest.fixture
async def led(monkeypatch: pytest.MonkeyPatch) -> Any:
    led = Led()
    monkeypatch.setattr(writer, "AIOKafkaProducer", lambda **options: led.brokers)
    led.elect()
    yield led
    await led.stop()


async def open_again(store: KafkaStore) -> None:
    while not store.is_leader:
        await store._changed.wait()


async def test_a_write_that_was_not_stored_is_decided_again(led: Led) -> None:
    led.brokers.send_fault = KafkaError("gone")
    writing = asyncio.create_task(registered(led.store, "s", text("a")))
    await settle(lambda: led.brokers.begun > 0)
    led.brokers.send_fault = None
    assert (await writing).id == 1
    assert led.brokers.transactions == 1
    assert (await registered(led.store, "s", text("b"))).id == 2


async def test_a_deletion_whose_answer_was_lost_is_not_done_twice(led: Led) -> None:
    await registered(led.store, "s", text("a"))
    led.brokers.stores_in_spite = True
    led.brokers.commit_fault = KafkaError("lost")
    deleting = asyncio.create_task(led.store.write(lambda view: delete_subject(view, "s")))
    await settle(lambda: led.brokers.transactions > 1)
    led.brokers.commit_fault = None
    done = await deleting
    assert isinstance(done, Done)
    assert done.response == [1]
    assert led.brokers.transactions == 2


async def test_a_deletion_that_was_not_stored_is_done_once(led: Led) -> None:
    await registered(led.store, "s", text("a"))
    led.brokers.commit_fault = KafkaError("lost")
    deleting = asyncio.create_task(led.store.write(lambda view: delete_subject(view, "s")))
    await settle(lambda: led.brokers.begun > 1)
    led.brokers.commit_fault = None
    done = await deleting
    assert isinstance(done, Done)
    assert done.response == [1]
    assert len([record for record in led.brokers.log if record is not None]) == 2


async def test_many_writes_are_decided_again_and_no_id_is_given_twice(led: Led) -> None:
    led.brokers.hold.clear()
    first = asyncio.create_task(registered(led.store, "s", text("a")))
    await settle(lambda: bool(led.brokers.pending))
    more = [
        asyncio.create_task(registered(led.store, "s", text(str(number % 7))))
        for number in range(20)
    ]
    await settle()
    led.brokers.commit_fault = KafkaError("lost")
    led.brokers.hold.set()
    await settle(lambda: not led.store.is_leader)
    led.brokers.commit_fault = None
    values = [await task for task in (first, *more)]
    assert len({(value.text, value.id, value.version) for value in values}) == 8
    assert sorted({value.id for value in values}) == list(range(1, 9))
    ids = {value.id for value in led.store.view.state.versions("s")}
    assert ids == set(range(1, 9))


async def test_who_waits_is_sent_to_another_instance_that_leads_now(led: Led) -> None:
    led.brokers.hold.clear()
    sent = asyncio.create_task(led.store.write(registering("s", text("a"))))
    await settle(lambda: bool(led.brokers.pending))
    queued = asyncio.create_task(led.store.write(registering("s", text("b"))))
    await settle()
    led.elect(OTHER)
    assert await queued == Forward("http://other:8081")
    assert not sent.done()  # until the next leader ends what is open
    await led.brokers.start()
    led.reader.read()
    assert await sent == Forward("http://other:8081")


async def test_a_write_that_the_next_leader_finds_committed_is_answered(led: Led) -> None:
    led.brokers.stores_in_spite = True
    led.brokers.commit_fault = KafkaError("lost")
    led.reader.reads_at_once = False
    sent = asyncio.create_task(registered(led.store, "s", text("a")))
    await settle(lambda: led.brokers.transactions > 0)
    led.elect(OTHER)
    await settle()
    led.reader.read()
    assert (await sent).id == 1


async def test_what_brokers_refuse_is_not_tried_again(led: Led) -> None:
    led.brokers.send_fault = TopicAuthorizationFailedError()
    with pytest.raises(RegistryError) as caught:
        await registered(led.store, "s", text("a"))
    assert caught.value.code == errors.STORE_ERROR
    led.brokers.send_fault = None
    await open_again(led.store)
    assert (await registered(led.store, "s", text("a"))).id == 1


async def test_a_write_in_doubt_at_the_deadline_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    led = Led(kafkastore_timeout_ms="50")
    monkeypatch.setattr(writer, "AIOKafkaProducer", lambda **options: led.brokers)
    led.elect()
    await open_again(led.store)
    led.reader.reads_at_once = False
    with pytest.raises(RegistryError) as caught:
        await registered(led.store, "s", text("a"))
    assert caught.value.code == errors.OPERATION_TIMEOUT
    assert "may still be stored" in caught.value.message
    await led.stop()


async def test_a_store_that_stops_refuses_who_waits(led: Led) -> None:
    led.store._lost("the test says so")
    waiting = asyncio.create_task(registered(led.store, "s", text("a")))
    await settle()
    await led.store.stop()
    with pytest.raises(RegistryError) as caught:
        await waiting
    assert caught.value.message == "this instance is stopping; try again"
