"""Which leader each followed partition is fetched from: one fetcher for each leader.

Source: Kafka's ReplicaFetcherManager.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from random import Random

from barnabas.base.clock import Clock
from barnabas.base.config.node import NodeConfig
from barnabas.base.network import Network
from barnabas.metadata.image import BrokerImage, ConfigResourceType, ConfigsImage
from barnabas.net.client import Peer
from barnabas.replication.fetcher import Fetcher
from barnabas.replication.fetcher_settings import FetcherSettings
from barnabas.replication.partition import Partition
from barnabas.replication.throttle import UNLIMITED, ReplicationQuota

LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
LEADER_REPLICAS = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS = "follower.replication.throttled.replicas"

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
        self._config = config
        self._listener_name = config.inter_broker_listener_name
        self._settings = FetcherSettings.from_config(config)
        self._clock = clock
        self._random = random
        self._network = network
        self._broker_epoch = broker_epoch
        self._fetchers: dict[int, Fetcher] = {}
        self._leaders: dict[Partition, int] = {}
        """Whom each followed partition follows."""
        self._endpoints: dict[int, tuple[str, int, int]] = {}
        """Host, port and broker epoch that a fetcher was made for."""
        self._is_started = False
        samples = config.int("replication.quota.window.num")
        sample_ms = config.int("replication.quota.window.size.seconds") * 1000
        self.leader_quota = ReplicationQuota(clock, samples, sample_ms)
        self.follower_quota = ReplicationQuota(clock, samples, sample_ms)

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
        fetcher = None if leader_id is None else self._fetchers.get(leader_id)
        if fetcher is not None:
            fetcher.remove(partition)

    def _add(self, partition: Partition, leader_id: int) -> None:
        fetcher = self._fetchers.get(leader_id)
        if fetcher is None:
            if self._endpoint(leader_id) is None:
                telemetry.warning(
                    "%s: leader %d is not known", partition.topic_partition, leader_id
                )
                return  # until `brokers_changed`
            fetcher = self._fetchers[leader_id] = Fetcher(
                self._node_id,
                leader_id,
                lambda: self._make_peer(leader_id),
                self._clock,
                self._random,
                self._settings,
                self.follower_quota,
                self._broker_epoch,
            )
        fetcher.add(partition)

    def _endpoint(self, leader_id: int) -> tuple[str, int, int] | None:
        broker = self.brokers.get(leader_id)
        endpoint = None if broker is None else broker.listeners.get(self._listener_name)
        if broker is None or endpoint is None:
            return None
        return endpoint.host, endpoint.port, broker.epoch

    def _make_peer(self, leader_id: int) -> Peer:
        endpoint = self._endpoint(leader_id) or self._endpoints[leader_id]
        self._endpoints[leader_id] = endpoint
        return Peer(
            self._network,
            self._clock,
            endpoint[0],
            endpoint[1],
            client_id=f"broker-{self._node_id}-fetcher-0",
            request_timeout_ms=self._settings.timeout_ms,
        )

    def brokers_changed(self, broker_ids: Iterable[int]) -> None:
        """Leaders may have become known, or answer elsewhere now."""
        for broker_id in broker_ids:
            fetcher = self._fetchers.get(broker_id)
            endpoint = self._endpoint(broker_id)
            if fetcher is not None:
                if endpoint is not None and endpoint != self._endpoints.get(broker_id):
                    fetcher.endpoint_changed()
            elif self._is_started and endpoint is not None:
                for partition, leader_id in self._leaders.items():
                    if leader_id == broker_id:
                        self._add(partition, leader_id)

    # -- quotas

    def configure(self, configs: ConfigsImage) -> None:
        """Follow the dynamic configuration of this broker."""
        values = {
            **configs.for_resource(ConfigResourceType.BROKER, ""),
            **configs.for_resource(ConfigResourceType.BROKER, str(self._node_id)),
        }
        for quota, key in ((self.leader_quota, LEADER_RATE), (self.follower_quota, FOLLOWER_RATE)):
            text = values.get(key)
            try:
                quota.rate_max = UNLIMITED if text is None else int(text)
            except ValueError as error:
                telemetry.error("%s cannot be used: %s", key, error)

    def throttle(self, topic: str, values: Mapping[str, str]) -> None:
        """Follow a topic's configuration."""
        for quota, key in (
            (self.leader_quota, LEADER_REPLICAS),
            (self.follower_quota, FOLLOWER_REPLICAS),
        ):
            quota.set_throttled(topic, values.get(key, "").split(","), self._node_id)

    async def close(self) -> None:
        """Stop every fetcher."""
        self._is_started = False
        await asyncio.gather(*(fetcher.close() for fetcher in self._fetchers.values()))
