"""Any sequence of requests, while a registry answers, is slow or fails."""

from __future__ import annotations

import asyncio
from typing import cast

from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.records import Record, encode_batch
from support.effort import examples
from support.logs import NOW_MS
from support.produce_world import CHECKED, PLAIN, ProduceWorld
from support.schema_world import id_of, settle

REGISTERED = (1, 2, 3)
Sent = tuple[tuple[str, ...], list[bytes | None]]
"""Topics, and the values of the batch that each of them gets."""
ids = st.sampled_from([*REGISTERED, 8, 9])
values = st.one_of(st.none(), st.just(b"text"), st.builds(lambda number: id_of(number), ids))
requests = st.tuples(
    st.just("send"),
    st.sampled_from([(CHECKED,), (PLAIN,), (CHECKED, PLAIN)]),
    st.lists(values, min_size=1, max_size=3),
)
events = st.one_of(
    requests,
    requests,
    st.tuples(st.sampled_from(["slow", "answer", "fail", "recover", "wait", "turn"])),
)


def is_good(batch: list[bytes | None]) -> bool:
    return all(value is None or value in map(id_of, REGISTERED) for value in batch)


@settings(max_examples=examples(30), deadline=None)
@given(st.lists(events, max_size=25))
def test_good_records_come_in_order_and_bad_ones_never(history: list[tuple[object, ...]]) -> None:
    asyncio.run(run(history))


async def run(history: list[tuple[object, ...]]) -> None:
    world = ProduceWorld()
    for number in REGISTERED:
        world.schemas.register(number, "checked-value")
    sent: list[Sent] = []
    for name, *arguments in history:
        if name == "send":
            topics, batch = cast("Sent", tuple(arguments))
            records = [Record(timestamp=NOW_MS, value=value) for value in batch]
            world.send(*((topic, encode_batch(records)) for topic in topics))
            sent.append((topics, batch))
        elif name == "wait":
            await world.schemas.pass_time(400)
        elif name == "turn":
            await settle()
        else:
            disturb(world, name)
    disturb(world, "recover")
    disturb(world, "answer")
    await world.schemas.pass_time(3000)
    answers = world.errors()
    assert [number for number, _ in answers] == list(range(len(sent)))
    expected: dict[str, list[bytes | None]] = {CHECKED: [], PLAIN: []}
    for (topics, batch), (_, errors) in zip(sent, answers, strict=True):
        for topic, error in zip(topics, errors, strict=True):
            is_in_order = topic == PLAIN or is_good(batch)
            allowed = {ErrorCode.NONE if is_in_order else ErrorCode.INVALID_RECORD}
            if topic == CHECKED and ("wait",) in history:  # it may have waited for too long
                allowed.add(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            assert error in allowed
            if not error:
                expected[topic] += batch
    assert {topic: world.values(topic) for topic in expected} == expected


def disturb(world: ProduceWorld, name: object) -> None:
    if name == "slow":
        world.schemas.is_slow = True
    elif name == "answer":
        world.schemas.answer_now()
    else:
        world.schemas.failure = "down" if name == "fail" else None
