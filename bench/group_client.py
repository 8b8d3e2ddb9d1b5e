"""Members of one group, who join at once.

`python -m bench.group_client BOOTSTRAP TOPIC GROUP PROTOCOL PARTITIONS MEMBERS`

librdkafka's consumers, all in this process. Prints as JSON after how many seconds the
group was stable: every partition assigned, to one member, and each member with its share.
"""

import json
import sys
import time

from confluent_kafka import Consumer

TIMEOUT_SECONDS = 180.0
LOOK_SECONDS = 0.01


def main(
    bootstrap: str, topic: str, group: str, protocol: str, partitions: int, members: int
) -> None:
    consumers = [_member(bootstrap, group, protocol) for _ in range(members)]
    for consumer in consumers:
        consumer.poll(0)
    began = time.monotonic()
    for consumer in consumers:
        consumer.subscribe([topic])
    while not _is_stable(consumers, partitions):
        if time.monotonic() > began + TIMEOUT_SECONDS:
            raise RuntimeError(f"not stable after {TIMEOUT_SECONDS:g} s")
        time.sleep(LOOK_SECONDS)
    seconds = time.monotonic() - began
    # Asked again a moment later: a rebalance that was still on its way would show.
    if not _is_stable(consumers, partitions):
        raise RuntimeError("stable, and then not")
    json.dump({"stable_s": seconds}, sys.stdout)
    sys.stdout.flush()
    for consumer in consumers:
        consumer.close()


def _member(bootstrap: str, group: str, protocol: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "group.protocol": protocol,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )


def _is_stable(consumers: list[Consumer], partitions: int) -> bool:
    owned: list[int] = []
    share = partitions // len(consumers)
    is_even = True
    for consumer in consumers:
        message = consumer.poll(0)
        error = None if message is None else message.error()
        if error is not None:
            raise RuntimeError(error.str())
        mine = [place.partition for place in consumer.assignment()]
        is_even = is_even and len(mine) == share
        owned += mine
    return is_even and len(owned) == partitions == len(set(owned))


if __name__ == "__main__":
    _, bootstrap_, topic_, group_, protocol_, partitions_, members_ = sys.argv
    main(bootstrap_, topic_, group_, protocol_, int(partitions_), int(members_))
