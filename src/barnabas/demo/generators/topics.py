"""Creating the demo's topics."""

from __future__ import annotations

from confluent_kafka.cimpl import NewTopic

from barnabas.demo.access import client_config
from barnabas.demo.contract import TOPIC_PARTITIONS
from barnabas.demo.topics import STATIONS
from barnabas.kafka.admin import Admin

_TIMEOUT_SECONDS = 60.0


def ensure_topics(bootstrap_servers: str) -> list[str]:
    """Create those of the demo's topics that do not exist and return their names.

    The cluster's default decides how many replicas they have.
    Raises confluent_kafka.KafkaException where the cluster refuses or cannot be reached.
    """
    settings = {**client_config(bootstrap_servers), "socket.timeout.ms": 10_000}
    topics = [
        NewTopic(
            name,
            num_partitions=partitions,
            config={"cleanup.policy": "compact"} if name == STATIONS else {},
        )
        for name, partitions in TOPIC_PARTITIONS.items()
    ]
    return Admin(settings, _TIMEOUT_SECONDS).create(topics)
