"""The registry's store over a real topic: elections, writes, and what is left when they fail."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import TransactionalIdAuthorizationFailed

from barnabas.app.cluster import Cluster
from barnabas.registry import errors
from barnabas.registry.core.deletion import delete_subject
from barnabas.registry.errors import RegistryError
from barnabas.registry.kafka import store as store_module
from barnabas.registry.kafka import writer
from barnabas.registry.kafka.faults import StoreError
from barnabas.registry.kafka.store import KafkaStore
from barnabas.registry.service import Done, Forward
from support.eventually import eventually
from support.patience import PATIENCE_S
from support.registry_checker import Acknowledged, check_records
from support.registry_format import text
from support.registry_member import Member, new_store, registered, registering

_NUMBERS = count(1)
PORTS = (8101, 8102, 8103)
"""Told to others, never bound. The first leads: its URL is the smallest."""


@pytest.fixture
def bootstrap(kafka_bootstrap_servers: str) -> str:
    return kafka_bootstrap_servers


@pytest.fixture
def topic() -> str:
    return f"_schemas-{next(_NUMBERS)}"


@asynccontextmanager
async def running(*stores: KafkaStore) -> AsyncIterator[None]:
    """Start in this order, stop in the other."""
    started: list[KafkaStore] = []
    try:
        for store in stores:
            await store.start()
            started.append(store)
        yield
    finally:
        for store in reversed(started):
            await store.stop()


async def topic_records(bootstrap: str, topic: str) -> list[tuple[bytes | None, bytes | None]]:
    """All committed records."""
    partition = TopicPartition(topic, 0)
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
    )
    await consumer.start()
    try:
        consumer.assign([partition])
        end = (await consumer.end_offsets([partition]))[partition]
        found = []
        while await consumer.position(partition) < end:
            for records in (await consumer.getmany(timeout_ms=100)).values():
                found += [(record.key, record.value) for record in records]
        return found
    finally:
        await consumer.stop()


async def create_topic(bootstrap: str, topic: str, partitions: int, **config: str) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        configs = {name.replace("_", "."): value for name, value in config.items()}
        await admin.create_topics([NewTopic(topic, partitions, 1, topic_configs=configs)])
    finally:
        await admin.close()


async def append(bootstrap: str, topic: str, *records: tuple[bytes, bytes | None]) -> None:
    """As any other program would, without a transaction."""
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all")
    await producer.start()
    try:
        for key, value in records:
            await producer.send_and_wait(topic, value, key, partition=0)
    finally:
        await producer.stop()


async def test_what_is_registered_is_there_after_a_restart(bootstrap: str, topic: str) -> None:
    first = new_store(bootstrap, topic, PORTS[0])
    async with running(first):
        ids = [(await registered(first, "s", text(name))).id for name in "abc"]
        again = await registered(first, "other", text("a"))
        assert (again.id, again.version) == (ids[0], 1)
    second = new_store(bootstrap, topic, PORTS[0])
    async with running(second):
        assert second.view.state == first.view.state
        assert (await registered(second, "s", text("b"))).id == ids[1]
        assert (await registered(second, "s", text("d"))).id == max(ids) + 1


async def test_five_hundred_registrations_of_one_schema_get_one_id(
    bootstrap: str, topic: str
) -> None:
    store = new_store(bootstrap, topic, PORTS[0])
    async with running(store):
        writes = (store.write(registering("s", text("a"))) for _ in range(500))
        found = await asyncio.gather(*writes)
        assert {done.response.id for done in found if isinstance(done, Done)} == {1}
        assert {done.offset for done in found if isinstance(done, Done)} == {found[0].offset}
        several = [text(str(number)) for number in range(50)] * 4
        values = await asyncio.gather(*(registered(store, "s", schema) for schema in several))
        assert len({value.id for value in values}) == 50
        assert sorted({value.version for value in values}) == list(range(2, 52))
    assert check_records(await topic_records(bootstrap, topic)) == 51


async def test_one_of_three_leads_and_the_others_forward(bootstrap: str, topic: str) -> None:
    stores = [new_store(bootstrap, topic, port) for port in PORTS]
    async with running(*reversed(stores)):
        first, *others = stores
        await eventually(lambda: first.is_leader, "the smallest URL leads")
        leader = "http://127.0.0.1:8101"
        await eventually(lambda: {store.leader_url for store in stores} == {leader}, "all know it")
        for store in others:
            assert await store.write(registering("s", text("a"))) == Forward(leader)
            assert not store.is_leader
        done = await first.write(registering("s", text("a")))
        assert isinstance(done, Done)
        for store in others:
            await store.caught_up(done.offset)
            assert store.view.state == first.view.state


async def test_the_next_leads_when_the_leader_leaves_under_writes(
    bootstrap: str, topic: str
) -> None:
    first, second = (new_store(bootstrap, topic, port) for port in PORTS[:2])
    done = 0
    async with running(second):
        async with running(first):
            await eventually(lambda: first.is_leader, "the first leads")

            async def write(name: str) -> None:
                nonlocal done
                await registered(first, "s", text(name))
                done += 1

            writes = [asyncio.create_task(write(str(number))) for number in range(100)]
            await asyncio.sleep(0)
        await asyncio.gather(*writes)
        assert done == 100
        await eventually(lambda: second.is_leader, "the second leads")
        assert (await registered(second, "s", text("99"))).id == 100
        assert (await registered(second, "s", text("new"))).id == 101
    assert check_records(await topic_records(bootstrap, topic)) == 101


@pytest.mark.slow
@pytest.mark.parametrize(
    "blow",
    [signal.SIGKILL, signal.SIGSTOP],
    ids=["killed", "paused"],
)
async def test_no_id_is_lost_or_forked_when_a_leader_fails_under_writes(
    bootstrap: str, topic: str, blow: signal.Signals
) -> None:
    """A paused one is continued when another has taken over, and finds that it leads no longer."""
    members = [await Member.start(bootstrap, topic, port) for port in PORTS]
    until = asyncio.Event()
    acknowledged = Acknowledged()
    try:
        writers = [
            asyncio.create_task(acknowledged.write(members, f"w{number}", until))
            for number in range(8)
        ]
        await eventually(lambda: len(acknowledged.ids) > 100, "writes are acknowledged")
        members[0].signal(blow)
        before = len(acknowledged.ids)
        await eventually(lambda: len(acknowledged.ids) > before + 100, "another takes over")
        if blow is signal.SIGSTOP:
            members[0].signal(signal.SIGCONT)
        else:
            members[0] = await Member.start(bootstrap, topic, PORTS[0])
        before = len(acknowledged.ids)
        await eventually(lambda: len(acknowledged.ids) > before + 200, "writes go on")
        until.set()
        await asyncio.gather(*writers)
    finally:
        for member in members:
            await member.end()
    async with asyncio.timeout(PATIENCE_S):
        store = await acknowledged.check(bootstrap, topic)
    await store.stop()
    check_records(await topic_records(bootstrap, topic))


async def test_a_topic_of_confluents_is_taken_over(bootstrap: str, topic: str) -> None:
    """Their bytes, as KafkaStore writes them: no transaction, a NOOP at each start."""
    await create_topic(bootstrap, topic, 1, cleanup_policy="compact")
    await append(
        bootstrap,
        topic,
        (b'{"keytype":"NOOP","magic":0}', None),
        (
            b'{"keytype":"SCHEMA","subject":"orders-value","version":1,"magic":1}',
            b'{"subject":"orders-value","version":1,"id":7,"schema":"{\\"fields\\":[\\"a\\"]}"}',
        ),
        (b'{"keytype":"SCHEMA","subj', b"{}"),
        (
            b'{"keytype":"CONFIG","subject":null,"magic":0}',
            b'{"compatibilityLevel":"FULL"}',
        ),
    )
    store = new_store(bootstrap, topic, PORTS[0])
    async with running(store):
        (found,) = store.view.state.versions("orders-value")
        assert (found.id, found.version, found.text) == (7, 1, '{"fields":["a"]}')
        config = store.view.state.config(None)
        assert config is not None
        assert config.compatibility_level == "FULL"
        assert (await registered(store, "orders-value", text("a"))).id == 7
        assert (await registered(store, "orders-value", text("a", "b"))).id == 8


async def test_a_record_of_somebody_else_is_taken_into_account(bootstrap: str, topic: str) -> None:
    """An instance of Confluent's that has lost the lead without knowing is not fenced."""
    store = new_store(bootstrap, topic, PORTS[0])
    async with running(store):
        assert (await registered(store, "s", text("a"))).id == 1
        await append(
            bootstrap,
            topic,
            (
                b'{"keytype":"SCHEMA","subject":"t","version":1,"magic":1}',
                b'{"subject":"t","version":1,"id":41,"schema":"{\\"fields\\":[\\"x\\"]}"}',
            ),
        )
        await store.caught_up()
        assert (await registered(store, "s", text("b"))).id == 42
        await append(bootstrap, topic, (b'{"keytype":"NOOP","magic":0}', None))
        await store.caught_up()
        assert store.is_leader


async def test_a_refusal_waits_for_what_it_rests_on(bootstrap: str, topic: str) -> None:
    """Deleted twice at once: the second is refused because of the first, which is committed."""
    store = new_store(bootstrap, topic, PORTS[0])
    async with running(store):
        await registered(store, "s", text("a"))
        first, second = await asyncio.gather(
            *(store.write(lambda view: delete_subject(view, "s")) for _ in range(2)),
            return_exceptions=True,
        )
        assert isinstance(first, Done)
        assert isinstance(second, RegistryError)
        assert second.code == errors.SUBJECT_SOFT_DELETED
        assert store.view.state.subjects() == []


async def test_a_schema_that_the_topic_cannot_take_is_refused_alone(
    bootstrap: str, topic: str
) -> None:
    await create_topic(bootstrap, topic, 1, cleanup_policy="compact", max_message_bytes="20000")
    store = new_store(bootstrap, topic, PORTS[0])
    async with running(store):
        large, small = await asyncio.gather(
            registered(store, "s", text("x" * 20_000)),
            registered(store, "s", text("y" * 18_000)),
            return_exceptions=True,
        )
        assert isinstance(large, RegistryError)
        assert large.code == errors.SCHEMA_TOO_LARGE
        assert not isinstance(small, BaseException)
        assert small.id == 1


@pytest.mark.parametrize(
    ("partitions", "policy", "message"),
    [
        (2, "compact", "has 2 partitions, and must have one"),
        (1, "delete", "has cleanup.policy=delete, and must have compact"),
        (1, "compact,delete", "has cleanup.policy=compact,delete, and must have compact"),
    ],
)
async def test_a_topic_that_would_lose_schemas_is_refused(
    bootstrap: str, topic: str, partitions: int, policy: str, message: str
) -> None:
    await create_topic(bootstrap, topic, partitions, cleanup_policy=policy)
    with pytest.raises(StoreError, match=message.replace(".", r"\.")):
        await new_store(bootstrap, topic, PORTS[0]).start()


async def test_two_instances_with_one_url_cannot_lead(bootstrap: str, topic: str) -> None:
    first = new_store(bootstrap, topic, PORTS[0])
    async with running(first):
        await eventually(lambda: first.is_leader, "the first leads")
        for patience_ms in (3_000, 12_000, 48_000):  # it begins to join late on a busy machine
            twin = new_store(
                bootstrap, topic, PORTS[0], kafkastore_init_timeout_ms=str(patience_ms)
            )
            with pytest.raises(StoreError) as refused:
                await twin.start()
            if "two instances have one URL" in str(refused.value):
                break
        assert "two instances have one URL" in str(refused.value)
        await eventually(lambda: first.is_leader, "the first leads again")


async def test_a_cluster_that_refuses_transactions_says_what_is_needed(
    bootstrap: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refused(AIOKafkaProducer):
        async def start(self) -> None:
            raise TransactionalIdAuthorizationFailed

    monkeypatch.setattr(writer, "AIOKafkaProducer", Refused)
    store = new_store(bootstrap, topic, PORTS[0], kafkastore_timeout_ms="2000")
    async with running(store):
        assert store.is_ready
        refused = await refusal(store, "allow Write and Describe on it")
        assert refused.code == errors.STORE_ERROR
        monkeypatch.undo()
        await eventually(lambda: store.is_leader, "it leads when it may")

        async def is_registered() -> bool:
            try:
                return (await registered(store, "s", text("a"))).id == 1
            except RegistryError:  # not in two seconds
                return False

        await eventually(is_registered, "a write")


async def refusal(store: KafkaStore, words: str) -> RegistryError:
    """Write until the error says so: between two attempts to lead there is no leader."""
    told: list[RegistryError] = []

    async def is_told() -> bool:
        with pytest.raises(RegistryError) as caught:
            await store.write(registering("s", text("a")))
        told.append(caught.value)
        return words in str(caught.value)

    await eventually(is_told, f"an error with {words!r}")
    return told[-1]


async def test_a_cluster_without_transactions_is_named(
    bootstrap: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Waiting(AIOKafkaProducer):
        async def start(self) -> None:
            await asyncio.Event().wait()

    monkeypatch.setattr(writer, "AIOKafkaProducer", Waiting)
    monkeypatch.setattr(store_module, "BEGIN_TIMEOUT_S", 0.1)
    store = new_store(bootstrap, topic, PORTS[0], kafkastore_timeout_ms="1000")
    async with running(store):
        await refusal(store, "__transaction_state")


async def test_nobody_leads_where_nobody_may(bootstrap: str, topic: str) -> None:
    store = new_store(
        bootstrap, topic, PORTS[0], leader_eligibility="false", kafkastore_timeout_ms="50"
    )
    async with running(store):
        assert store.leader_url is None
        assert store.is_ready
        with pytest.raises(RegistryError, match="no instance may lead") as caught:
            await store.write(registering("s", text("a")))
        assert caught.value.code == errors.UNKNOWN_LEADER


async def test_a_topic_that_is_deleted_ends_the_store(bootstrap: str, topic: str) -> None:
    store = new_store(bootstrap, topic, PORTS[0], kafkastore_request_timeout_ms="2000")
    async with running(store):
        await registered(store, "s", text("a"))
        admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await admin.start()
        try:
            await admin.delete_topics([topic])
        finally:
            await admin.close()
        async with asyncio.timeout(PATIENCE_S):
            failure = await store.failure
        assert topic in str(failure)
        assert not store.is_ready


async def test_brokers_that_cannot_be_reached_are_named() -> None:
    store = new_store("127.0.0.1:1", "t", PORTS[0], kafkastore_init_timeout_ms="500")
    with pytest.raises(StoreError, match=r"at 127\.0\.0\.1:1 within 500 ms"):
        await store.start()


async def test_writes_go_on_when_brokers_go_and_come(topic: str) -> None:
    """One broker after another, then all of them at once."""
    with Cluster(nodes=3) as cluster:
        first, second = (new_store(cluster.bootstrap_servers, topic, port) for port in PORTS[:2])
        acknowledged = Acknowledged()
        async with running(first, second):

            async def write(name: str) -> None:
                await acknowledged.write_at([first, second], "s", text(name))

            await write("before")
            for node_id in (1, 2, 3):
                await asyncio.to_thread(cluster.stop_node, node_id)
                await write(f"without {node_id}")
                await asyncio.to_thread(cluster.start_node, node_id)
                await write(f"with {node_id} again")
            for act in (cluster.stop_node, cluster.start_node):
                await asyncio.gather(*(asyncio.to_thread(act, node_id) for node_id in (1, 2, 3)))
            await write("after")
            assert sorted(acknowledged.ids.values()) == list(range(1, 9))
            await second.caught_up()
            assert second.view.state == first.view.state
