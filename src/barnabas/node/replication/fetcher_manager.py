"""Fetcher manager: assigns each followed partition to a fetcher of its leader.

At most `num.replica.fetchers` follow a leader, each with its own connection and fetch session;
there are as many as have partitions. When the number changes, partitions move
between them at once, each from one to one other.
Source: Kafka's AbstractFetcherManager and ReplicaFetcherManager.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import lru_cache
from random import Random
from typing import Any

from barnabas.base.clock import Clock
from barnabas.base.ids import TopicPartition
from barnabas.base.network import Network
from barnabas.java.hash import as_int32, java_abs, java_hash
from barnabas.node.config.definitions import (
    FOLLOWER_RATE_KEY,
    FOLLOWER_REPLICAS_KEY,
    LEADER_RATE_KEY,
    LEADER_REPLICAS_KEY,
)
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.log.errors import LogDirFailure
from barnabas.node.metadata.broker_peers import endpoint_between_brokers
from barnabas.node.metadata.image import BrokerImage
from barnabas.node.net.client import Peer
from barnabas.node.net.dialer import Dialer
from barnabas.node.replication.fetcher import Fetcher, FetcherSettings
from barnabas.node.replication.partition import Partition
from barnabas.node.replication.throttle import ReplicationQuota
from barnabas.protocol.messages.fetch import FetchRequest, ReplicaState
from barnabas.protocol.well_known import FINAL_EPOCH, NO_SESSION

RECEIVE_BUFFER_KEY = "replica.socket.receive.buffer.bytes"
FETCHERS = "num.replica.fetchers"
FETCHER_KEYS = (LEADER_RATE_KEY, FOLLOWER_RATE_KEY, FETCHERS)

FetcherKey = tuple[int, int]
"""The leader's id, and the fetcher's among those that follow it."""

telemetry = logging.getLogger(__name__)


class FetcherManager:
    """The fetchers of one node, and the quotas of replication."""

    def __init__(
        self,
        node_id: int,
        config: NodeConfig,
        clock: Clock,
        random: Random,
        network: Network,
        broker_epoch: Callable[[], int],
    ) -> None:
        self.brokers: Mapping[int, BrokerImage] = {}
        self._node_id = node_id
        self._listener_name = config.inter_broker_listener_name
        self._settings = FetcherSettings.from_config(config)
        self._clock = clock
        self._random = random
        self._dialer = Dialer(  # a fetcher rests after a failure
            config,
            network,
            clock,
            random,
            receive_buffer_key=RECEIVE_BUFFER_KEY,
            reconnect_backoff_ms=0,
        )
        self._broker_epoch = broker_epoch
        self._count = config.get_int(FETCHERS)
        """Fetchers for each leader, at most."""
        self._fetchers: dict[FetcherKey, Fetcher] = {}
        self._leaders: dict[Partition, int] = {}
        """Whom each followed partition follows."""
        self._endpoints: dict[FetcherKey, tuple[str, int, int]] = {}
        """Host, port and broker epoch that a fetcher was made for."""
        self._work: dict[asyncio.Task[None], None] = {}
        """The remaining work of a change of the number."""
        self._is_started = False
        samples = config.get_int("replication.quota.window.num")
        sample_ms = config.get_int("replication.quota.window.size.seconds") * 1000
        self.leader_quota = ReplicationQuota(clock, samples, sample_ms)
        self.follower_quota = ReplicationQuota(clock, samples, sample_ms)

    def fetchers(self) -> list[tuple[str, Fetcher]]:
        """The fetchers, each with the name that Kafka gives its thread."""
        return [
            (f"ReplicaFetcherThread-{fetcher_id}-{leader_id}", fetcher)
            for (leader_id, fetcher_id), fetcher in self._fetchers.items()
        ]

    def start(self) -> None:
        """Begin to fetch what is followed."""
        self._is_started = True
        for partition, leader_id in self._leaders.items():
            self._add(partition, leader_id)

    def follow(self, partition: Partition) -> None:
        """Fetch a partition from the leader it has now, or from none."""
        self.stop(partition)
        leader_id = partition.leader_id
        if leader_id < 0:
            return
        self._leaders[partition] = leader_id
        if self._is_started:
            self._add(partition, leader_id)

    def stop(self, partition: Partition) -> None:
        """Fetch a partition no more."""
        leader_id = self._leaders.pop(partition, None)
        fetcher = None if leader_id is None else self._fetchers.get(self._key(partition, leader_id))
        if fetcher is not None:
            fetcher.remove(partition)

    def _key(self, partition: Partition, leader_id: int) -> FetcherKey:
        return leader_id, fetcher_of(partition.topic_partition, self._count)

    def _add(self, partition: Partition, leader_id: int) -> None:
        if partition.log.needs_flush and not partition.log.is_offline:
            self._begin(self._flush_first([partition], self._add))
            return
        fetcher = self._fetcher_for(partition, leader_id)
        if fetcher is not None:
            fetcher.add(partition)

    def _fetcher_for(self, partition: Partition, leader_id: int) -> Fetcher | None:
        """The one that is to fetch a partition; None while its leader is not known."""
        key = self._key(partition, leader_id)
        fetcher = self._fetchers.get(key)
        if fetcher is None:
            if self._endpoint(leader_id) is None:
                telemetry.warning(
                    "%s: leader %d is not known", partition.topic_partition, leader_id
                )
                return None  # until `brokers_changed`
            fetcher = self._fetchers[key] = Fetcher(
                self._node_id,
                leader_id,
                lambda: self._make_peer(key),
                self._clock,
                self._random,
                self._settings,
                self.follower_quota,
                self._broker_epoch,
            )
        return fetcher

    def _endpoint(self, leader_id: int) -> tuple[str, int, int] | None:
        broker = self.brokers.get(leader_id)
        endpoint = endpoint_between_brokers(broker, self._listener_name)
        if broker is None or endpoint is None:
            return None
        return endpoint.host, endpoint.port, broker.epoch

    def _make_peer(self, key: FetcherKey) -> Peer:
        leader_id, fetcher_id = key
        endpoint = self._endpoint(leader_id) or self._endpoints[key]
        self._endpoints[key] = endpoint
        client_id = f"broker-{self._node_id}-fetcher-{fetcher_id}"
        return self._dialer.peer(*endpoint[:2], client_id, self._settings.timeout_ms)

    def brokers_changed(self, broker_ids: Iterable[int]) -> None:
        """Leaders may have become known, or answer elsewhere now."""
        for broker_id in broker_ids:
            endpoint = self._endpoint(broker_id)
            if endpoint is None:
                continue
            known = [key for key in self._fetchers if key[0] == broker_id]
            for key in known:
                if endpoint != self._endpoints.get(key):
                    self._fetchers[key].endpoint_changed()
            if self._is_started and len(known) < self._count:
                for partition, leader_id in self._leaders.items():
                    if leader_id == broker_id and self._key(partition, leader_id) not in known:
                        self._add(partition, leader_id)

    # -- how many fetchers

    def _resize(self, count: int) -> None:
        """Spread what is followed over so many fetchers; a partition moves only if it must."""
        before, self._count = self._count, count
        telemetry.info("using %d fetchers per leader instead of %d", count, before)
        if not self._is_started:
            return
        sessions = {key: fetcher.session_id for key, fetcher in self._fetchers.items()}
        unflushed: list[Partition] = []
        for partition, leader_id in self._leaders.items():
            former_id = fetcher_of(partition.topic_partition, before)
            if former_id == fetcher_of(partition.topic_partition, count):
                continue
            if partition.log.is_offline:
                pass  # nothing fetches it any more
            elif partition.log.needs_flush:
                unflushed.append(partition)
            else:
                self._move(partition, leader_id)
            former = self._fetchers.get((leader_id, former_id))
            if former is not None:
                former.remove(partition)
        for key in [key for key, fetcher in self._fetchers.items() if not len(fetcher)]:
            del self._fetchers[key]
            if sessions[key] != NO_SESSION:
                self._begin(self._end_session(key, sessions[key]))
        if unflushed:
            self._begin(self._flush_first(unflushed, self._move))

    def _move(self, partition: Partition, leader_id: int) -> None:
        fetcher = self._fetcher_for(partition, leader_id)
        if fetcher is not None:
            fetcher.take_over(partition)

    async def _flush_first(
        self, partitions: list[Partition], follow: Callable[[Partition, int], None]
    ) -> None:
        """A fetch acknowledges what `flush.messages` wants on the medium when it is there."""
        for partition in partitions:
            try:
                await partition.log.flush()
            except LogDirFailure as failure:
                telemetry.error("%s cannot be flushed: %s", partition.topic_partition, failure)
                continue
            leader_id = self._leaders.get(partition)
            if self._is_started and leader_id is not None:
                follow(partition, leader_id)

    async def _end_session(self, key: FetcherKey, session_id: int) -> None:
        """Have a leader forget the session of a fetcher that is no more.

        It would rest in the leader's cache until the place is needed, with all that it watches.
        """
        peer = self._make_peer(key)
        try:
            await peer.send(
                FetchRequest(
                    replica_state=ReplicaState(
                        replica_id=self._node_id, replica_epoch=self._broker_epoch()
                    ),
                    session_id=session_id,
                    session_epoch=FINAL_EPOCH,
                )
            )
        except OSError as error:
            telemetry.info("broker %d did not get the end of a session: %s", key[0], error)
        finally:
            peer.close()
            if key not in self._fetchers:
                self._endpoints.pop(key, None)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Do `work` beside everything else, until `close` at the latest."""
        task = asyncio.ensure_future(work)
        self._work[task] = None
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._work.pop(task, None)
        if not task.cancelled() and task.exception() is not None:
            telemetry.error("cannot change the number of fetchers", exc_info=task.exception())

    # -- configuration

    def configure(self, config: NodeConfig) -> None:
        """Follow `FETCHER_KEYS`."""
        self.leader_quota.rate_max = config.get_int(LEADER_RATE_KEY)
        self.follower_quota.rate_max = config.get_int(FOLLOWER_RATE_KEY)
        count = config.get_int(FETCHERS)
        if count != self._count:
            self._resize(count)

    def follow_tls(self, config: NodeConfig) -> None:
        """Open new connections as another configuration says."""
        self._dialer.follow(config)

    def throttle(self, topic: str, values: Mapping[str, str]) -> None:
        """Follow a topic's configuration."""
        for quota, key in (
            (self.leader_quota, LEADER_REPLICAS_KEY),
            (self.follower_quota, FOLLOWER_REPLICAS_KEY),
        ):
            quota.set_throttled(topic, values.get(key, "").split(","), self._node_id)

    async def close(self) -> None:
        """Stop every fetcher."""
        self._is_started = False
        for task in self._work:
            task.cancel()
        await asyncio.gather(*(fetcher.close() for fetcher in self._fetchers.values()))
        if self._work:
            await asyncio.wait(self._work)


# Spread of a leader's partitions over its fetchers (`num.replica.fetchers`).
#
# Topic and partition alone decide, so that a partition stays where it is until the number changes,
# on every follower and after each restart. Source: Kafka's AbstractFetcherManager.getFetcherId.


TOPICS_REMEMBERED_MAX = 1024

_topic_hash = lru_cache(TOPICS_REMEMBERED_MAX)(java_hash)


def fetcher_of(topic_partition: TopicPartition, count: int) -> int:
    """The fetcher's id, from 0 on, when `count` of them share what a leader leads."""
    if count == 1:
        return 0
    topic, index = topic_partition
    return java_abs(as_int32(31 * _topic_hash(topic) + index)) % count
