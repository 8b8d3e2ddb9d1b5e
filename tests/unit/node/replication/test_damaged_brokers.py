"""Brokers whose files are damaged: what followers of such a leader do, and what is not given up."""

import asyncio
import struct

import pytest

from barnabas.node.log.names import PARTITION_METADATA_FILE
from barnabas.protocol.records.batch import iterate_headers
from support.replica_world import Broker, ReplicaWorld, append, committed

VALUES = list("abcdefghij")
DAMAGED = 4
"""The offset of the batch that is damaged, one record each."""


def damage(broker: Broker, how: str) -> None:
    """Change the batch at `DAMAGED` in the file, and have the log read from there."""
    log = broker.partition().log
    data = broker.disk.inode(log.active.files.log_path).data
    places = [place for place, _ in iterate_headers(bytes(data))]
    place = places[DAMAGED]
    match how:
        case "ahead":
            struct.pack_into(">q", data, place, DAMAGED + 2)
        case "behind":
            struct.pack_into(">q", data, place, DAMAGED - 4)
        case "crc":
            data[place + 65] ^= 1
        case "magic":
            data[place + 16] = 7
    log.tail.clear()


@pytest.mark.parametrize("how", ["ahead", "behind", "crc", "magic"])
@pytest.mark.parametrize("fetch_max_bytes", ["1", "1000000"])
def test_a_follower_stops_at_the_leaders_damage_until_another_leads(
    how: str, fetch_max_bytes: str, caplog: pytest.LogCaptureFixture
) -> None:
    world = ReplicaWorld(replica_fetch_max_bytes=fetch_max_bytes)

    async def scenario() -> None:
        await world.start()
        world.create_topic([1, 2, 3], min_insync_replicas="1")
        leader = await world.leads(1)
        late = world.brokers[3]
        late.kill()
        world.fence(3)
        for value in VALUES:
            append(leader, value)
        await committed(leader, len(VALUES))
        damage(leader, how)
        await late.start()
        await world.until(lambda: late.partition().log.log_end_offset == DAMAGED)
        looks = len(caplog.records)
        await asyncio.sleep(20)  # of virtual time
        assert late.partition().log.log_end_offset == DAMAGED
        assert late.values() == VALUES[:DAMAGED]
        assert 3 not in world.placed().isr
        assert len(caplog.records) - looks < 100  # it looks again from time to time, no more
        leader.kill()
        world.fence(1)
        await world.leads(2)
        await world.until(lambda: 3 in world.placed().isr)
        assert late.values() == VALUES

    world.run(scenario())


@pytest.mark.parametrize("bit", range(0, 22 * 8, 7))
def test_a_garbled_topic_id_costs_no_log(bit: int) -> None:
    """It would be taken for that of a topic deleted since, and its log go the same way."""
    world = ReplicaWorld()

    async def scenario() -> None:
        await world.start()
        world.create_topic([1], min_insync_replicas="1")
        leader = await world.leads(1)
        append(leader, *VALUES)
        await leader.partition().log.flush()
        path = f"{leader.partition().log.directory}/{PARTITION_METADATA_FILE}"
        topic_id = leader.partition().topic_id
        leader.kill()
        data = leader.disk.inode(path).data
        at = data.index(b"topic_id: ") + len(b"topic_id: ")
        data[at + bit // 8] ^= 1 << bit % 8
        await leader.start()
        await world.until(lambda: leader.partition().is_leader)
        assert leader.values() == VALUES
        assert leader.partition().log.topic_id == topic_id

    world.run(scenario())
