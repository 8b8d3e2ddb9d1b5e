"""Spread of a leader's partitions over its fetchers (`num.replica.fetchers`).

Topic and partition alone decide, so that a partition stays where it is until the number changes,
on every follower and after each restart. Source: Kafka's AbstractFetcherManager.getFetcherId.
"""

from functools import lru_cache

from barnabas.base.ids import TopicPartition
from barnabas.java.hash import as_int32, java_abs, java_hash

TOPICS_REMEMBERED_MAX = 1024

_topic_hash = lru_cache(TOPICS_REMEMBERED_MAX)(java_hash)


def fetcher_of(topic_partition: TopicPartition, count: int) -> int:
    """The fetcher's id, from 0 on, when `count` of them share what a leader leads."""
    if count == 1:
        return 0
    topic, index = topic_partition
    return java_abs(as_int32(31 * _topic_hash(topic) + index)) % count
