"""Many members of one group, in a process.

`python crowd.py BOOTSTRAP PROTOCOL GROUP TOPIC MEMBERS` answers each line of its input with one of
JSON: by member, the partitions that it owns at that moment.
"""

from __future__ import annotations

import json
import select
import sys

from confluent_kafka import Consumer

from support.chain_member import Silence

LOOK_S = 0.05


def main(bootstrap: str, protocol: str, group: str, topic: str, members: int) -> None:
    consumers = [
        Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "group.protocol": protocol,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "logger": Silence(),
            }
        )
        for _ in range(members)
    ]
    for consumer in consumers:
        consumer.subscribe([topic])
    while True:
        for consumer in consumers:
            consumer.poll(0)
        if select.select([sys.stdin], [], [], LOOK_S)[0]:
            if not sys.stdin.readline():
                return
            owned = [[place.partition for place in each.assignment()] for each in consumers]
            sys.stdout.write(json.dumps({"owned": owned}) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]))
