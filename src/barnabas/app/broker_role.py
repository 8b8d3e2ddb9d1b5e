"""The broker's part of a node: partitions, coordinators, and what serves clients.

It is made when its logs are recovered, with its listeners bound. `start` makes it part of the
cluster: it is registered, takes up its partitions and groups, and only then accepts the first
client. It leaves the other way around, and ends with the clean-shutdown marker.
"""

import socket
from collections.abc import Sequence
from functools import partial
from random import Random

from barnabas.app.background import Background
from barnabas.app.coordinators import (
    Coordinators,
    keep_coordinators,
    keep_logs,
    make_shares,
    make_transactions,
)
from barnabas.app.listening import (
    LIMIT_KEYS,
    ListenerCertificates,
    bind_listeners,
    follow_limits,
    server_limits,
)
from barnabas.app.log_directories import LogDirectories
from barnabas.app.logins import Gates
from barnabas.app.quotas import ListenerQuotas
from barnabas.base.clock import Clock
from barnabas.base.disk import Disk
from barnabas.base.ending import take_all
from barnabas.base.local_disk import LocalDisk
from barnabas.base.network import Network
from barnabas.node.broker.apis.topics import create_topics
from barnabas.node.broker.client_telemetry import ClientTelemetry
from barnabas.node.broker.dispatch import Dispatcher
from barnabas.node.broker.fetch.sessions import FetchSessionCache
from barnabas.node.broker.handlers import ROUTES, TELEMETRY_ROUTES
from barnabas.node.broker.produce.decompression import Decompression
from barnabas.node.broker.recently_fenced import RecentlyFencedBrokers
from barnabas.node.broker.schemas.known_schemas import REGISTRY_KEYS, KnownSchemas
from barnabas.node.broker.services import VERIFICATION_KEY, BrokerServices
from barnabas.node.config.definitions import MOVE_RATE_KEY
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.config.node_values import CORDONED_KEY
from barnabas.node.config.tls import TLS_KEYS
from barnabas.node.config.topic import TOPIC_DEFAULT_KEYS
from barnabas.node.coordinator.group.service import GroupCoordinator
from barnabas.node.coordinator.internal_topic import InternalTopic
from barnabas.node.log.compaction.compactor import (
    COMPACTION_KEYS,
    CompactionSettings,
    Compactor,
    Worker,
)
from barnabas.node.log.compaction.workers import InlineWorker, ProcessWorker
from barnabas.node.log.config import LogConfig
from barnabas.node.log.manager import LogManager
from barnabas.node.metadata.asker import OWN
from barnabas.node.metadata.broker_peers import BrokerPeers
from barnabas.node.metadata.image import Endpoint, MetadataImage
from barnabas.node.metadata.metadata_log import PROTOCOL_NUMBERS
from barnabas.node.metadata.node import MetadataNode
from barnabas.node.metadata.replay import ImageDelta
from barnabas.node.net.request_times import RequestTimes
from barnabas.node.net.request_trace import Tracer
from barnabas.node.net.server import Server
from barnabas.node.replication.fetcher_manager import FETCHER_KEYS
from barnabas.node.replication.partition import Partition
from barnabas.node.replication.replica_manager import ReplicaManager
from barnabas.node.security.authorizer import Authorizer
from barnabas.node.share.partitions import SharePartitions
from barnabas.node.share.settings import ShareSettings
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.well_known import CONSUMER_OFFSETS, SHARE_GROUP_STATE


class BrokerRole:
    """A `node.Role`, of a node that plays `broker`."""

    def __init__(
        self,
        *,
        config: NodeConfig,
        disk: Disk,
        clock: Clock,
        network: Network,
        random: Random,
        metadata: MetadataNode,
        authorizer: Authorizer,
        logs: LogManager,
        times: RequestTimes | None,
    ) -> None:
        """Use `open`. `logs` are loaded."""
        self._config = config
        self._clock = clock
        self._metadata = metadata
        self._background = Background(clock)
        self.certificates = ListenerCertificates(clock)
        self._schemas = KnownSchemas(clock, random, self._background.start)
        self.logs = logs
        self.replicas = ReplicaManager(
            config.node_id,
            logs,
            self._topic_log_config,
            clock=clock,
            random=random,
            config=config,
            network=network,
            ask_controller=metadata.handle,
            broker_epoch=self._broker_epoch,
        )
        takes_telemetry = times is not None and config.get_bool("barnabas.metrics.clients")
        self._directories = LogDirectories(
            config.node_id, logs, self.replicas, metadata, self._background.start
        )
        offsets_topic = InternalTopic(CONSUMER_OFFSETS, self.replicas, clock)
        self._groups = GroupCoordinator(config, clock, random, offsets_topic)
        self._peers = peers = BrokerPeers(config, network, clock, random, self._image)
        self._transactions = make_transactions(
            config,
            clock,
            peers,
            self._image,
            self.replicas,
            self._groups,
            self._allocate_producer_id,
        )
        self._shares = make_shares(
            config,
            clock,
            peers,
            self._image,
            self.replicas,
            self._groups,
            source=random,
            create_topic=self._create_share_group_state,
        )
        self.ends = self._shares.ends
        """Tells the ends of partitions anywhere in the cluster."""
        self._share_partitions = SharePartitions(
            clock, self.replicas, self._shares.persister, ShareSettings(config, self._image)
        )
        self._coordinators = Coordinators(
            config.node_id,
            self.replicas,
            self._groups,
            self._transactions.coordinator,
            self._shares.coordinator,
        )
        self._recently_fenced = RecentlyFencedBrokers(
            clock, config.get_int("broker.session.timeout.ms")
        )
        self.services = BrokerServices(
            config=config,
            clock=clock,
            random=random,
            node_id=config.node_id,
            cluster_id=metadata.cluster_id,
            metadata=metadata,
            replicas=self.replicas,
            logs=logs,
            groups=self._groups,
            transactions=self._transactions.coordinator,
            verifier=self._transactions.verifier,
            marker_writer=self._transactions.marker_writer,
            shares=self._shares.coordinator,
            persister=self._shares.persister,
            share_groups=self._shares.groups,
            share_partitions=self._share_partitions,
            recently_fenced=self._recently_fenced,
            fetch_sessions=FetchSessionCache(
                config.get_int("max.incremental.fetch.session.cache.slots"),
                lambda: random.getrandbits(31),
            ),
            schemas=self._schemas,
            fetch_max_bytes=config.get_int("fetch.max.bytes"),
            in_background=self._background.start,
            authorizer=authorizer,
            decompression=Decompression(logs.turns),
            client_telemetry=(
                ClientTelemetry(config.get_int("telemetry.max.bytes")) if takes_telemetry else None
            ),
        )
        worker: Worker = (
            ProcessWorker() if isinstance(disk, LocalDisk) else InlineWorker(disk, clock)
        )
        self.compactor = Compactor(
            logs,
            clock,
            worker,
            CompactionSettings.from_config(config),
            checkpoint=logs.save_cleaned,
        )
        self._dispatcher = Dispatcher(
            self.services, (*ROUTES, *TELEMETRY_ROUTES) if takes_telemetry else ROUTES
        )
        self.server = Server(network, clock, self._dispatcher, server_limits(config), times=times)
        self.gates = Gates(
            config=config,
            clock=clock,
            random=random,
            metadata=metadata,
            services=self.services,
            service=self._dispatcher,
        )
        """The login gates of the listeners."""
        self.quotas = ListenerQuotas(config, clock, self.server, self._dispatcher, self.services)

    @classmethod
    async def open(
        cls,
        *,
        config: NodeConfig,
        disk: Disk,
        clock: Clock,
        network: Network,
        random: Random,
        metadata: MetadataNode,
        authorizer: Authorizer,
        times: RequestTimes | None = None,
    ) -> "BrokerRole":
        """Recover the logs and bind the listeners. Raises CannotListenError."""
        logs = LogManager(
            disk,
            config.log_dirs,
            clock,
            # Topics' own settings are not known yet; `ReplicaManager.load` brings them.
            LogConfig.from_topic_values(metadata.effective.topic(metadata.image.configs, "")),
            random=random,
            producer_id_expiration_ms=config.get_int("producer.id.expiration.ms"),
        )
        try:
            logs.load()
            role = cls(
                config=config,
                disk=disk,
                clock=clock,
                network=network,
                random=random,
                metadata=metadata,
                authorizer=authorizer,
                logs=logs,
                times=times,
            )
        except BaseException:
            logs.abandon()
            raise
        try:
            encrypted = bind_listeners(role.server, config, config.broker_listeners, role.gates)
            role.certificates.watch(encrypted)
        except BaseException:
            await role.abandon()
            raise
        return role

    # -- life

    def trace_by(self, tracer: Tracer) -> None:
        """Have requests traced from now on."""
        self._dispatcher.tracer = tracer

    async def start(self) -> None:
        """Join the cluster, then serve; the metadata has been started."""
        self._metadata.on_config(LIMIT_KEYS, partial(follow_limits, self.server))
        await self._join()
        self.server.start()
        keep_logs(self._background, self._config, self._clock, self.logs)
        keep_coordinators(
            self._background,
            self._config,
            self._groups,
            self._transactions.coordinator,
            self._shares.coordinator,
        )
        if self._config.get_bool("log.cleaner.enable"):
            self.compactor.start()

    async def _join(self) -> None:
        """Take up the cluster's state and become part of it."""
        metadata = self._metadata
        await metadata.register_broker(
            self.advertised_endpoints(), previous_broker_epoch=self._clean_broker_epoch()
        )
        self._follow_config()
        self.replicas.load(metadata.image)
        self.replicas.start()
        self._groups.image_changed(metadata.image, has_new_topics=True)
        self._recently_fenced.load(metadata.image)
        self.quotas.load(metadata.image)
        metadata.add_listener(self._image_changed)
        await self.replicas.opened()
        self.replicas.on_opened = self._partitions_opened
        await self._directories.say(metadata.image)  # the only one may be a new one, too
        # Earlier failures are reported at once, later ones as they happen.
        self.logs.on_directory_offline = self._directories.failed
        await self._directories.say_failed()
        await metadata.unfence_broker()
        self._coordinators.load(metadata.image)

    def _follow_config(self) -> None:
        """Other objects that follow the dynamic configuration, and their keys."""
        on_config = self._metadata.on_config
        on_config((CORDONED_KEY,), self._directories.configure)
        on_config(FETCHER_KEYS, self.replicas.fetchers.configure)
        on_config(TLS_KEYS, self.certificates.follow)
        on_config(TLS_KEYS, self._peers.follow)
        on_config(TLS_KEYS, self.replicas.fetchers.follow_tls)
        on_config((MOVE_RATE_KEY,), self.replicas.moves.configure)
        on_config(TOPIC_DEFAULT_KEYS, self.replicas.configure_logs)
        on_config((VERIFICATION_KEY,), self.services.configure)
        on_config(REGISTRY_KEYS, self._schemas.configure)
        on_config(COMPACTION_KEYS, self.compactor.configure)

    async def leave(self) -> None:
        """Give leaderships away, refuse new work and finish what is under way."""
        await take_all(self._metadata.controlled_shutdown, self._close_parts)

    async def close(self) -> None:
        """Flush and close the logs; the metadata has been stopped."""
        await take_all(self.logs.complete, self._close_logs)

    async def abandon(self) -> None:
        """Let go of what `leave` was not called for."""
        await take_all(self._close_parts, self._close_logs)

    async def _close_parts(self) -> None:
        """Have all parts finish what is under way; only the logs are still needed then."""
        await take_all(
            self._background.close,
            self.certificates.close,
            self.compactor.stop,
            self.server.close,
            self.gates.close,
            self._dispatcher.close,
            self._transactions.verifier.close,
            self._share_partitions.close,
            self._shares.close,
            self._schemas.close,
            self.services.close,
            self._transactions.coordinator.close,
            self._groups.close,
            self.replicas.close,
            self._background.end,  # last: what the others are asked to answer ends by itself
        )

    def _close_logs(self) -> None:
        """Close the logs; a broker that was not registered leaves the epoch of its last end."""
        epoch = self._metadata.broker_epoch
        self.logs.shutdown(epoch if epoch >= 0 else self._clean_broker_epoch())

    def _clean_broker_epoch(self) -> int:
        """The epoch in which every log directory was closed cleanly, or -1 (KIP-966)."""
        epochs = self.logs.previous_broker_epochs
        if set(epochs) != set(self.logs.log_dirs) or len(set(epochs.values())) != 1:
            return -1
        return next(iter(epochs.values()))

    # -- what others are told

    def advertised_endpoints(self) -> dict[str, Endpoint]:
        """The advertised endpoints, with the machine's name and bound ports filled in."""
        ports = self.server.ports
        return {
            listener.name: Endpoint(
                listener.host or socket.getfqdn(),
                listener.port or ports[listener.name],
                PROTOCOL_NUMBERS[listener.security_protocol],
            )
            for listener in self._config.advertised_listeners
        }

    # -- what the parts ask each other for

    def _image(self) -> MetadataImage:
        return self._metadata.image

    def _broker_epoch(self) -> int:
        return self._metadata.broker_epoch

    async def _allocate_producer_id(self) -> int | ErrorCode:
        return await self.services.allocate_producer_id()

    async def _create_share_group_state(self) -> None:
        await create_topics(self.services, [SHARE_GROUP_STATE], OWN)

    def _topic_log_config(self, image: MetadataImage, topic: str) -> LogConfig:
        config = LogConfig.from_topic_values(self._metadata.effective.topic(image.configs, topic))
        if config.schema_validation is not None:
            self._schemas.is_needed = True
        return config

    # -- while it runs

    def _image_changed(self, delta: ImageDelta, image: MetadataImage) -> None:
        self._recently_fenced.image_changed(delta)
        self.quotas.image_changed(delta, image)
        if delta.brokers:
            self._peers.brokers_changed(image)
        self.replicas.apply(delta, image)
        self._share_partitions.image_changed(delta, image)
        self._directories.image_changed(delta, image)
        has_new_topics = any(topic.created for topic in delta.topics.values())
        self._groups.image_changed(image, has_new_topics=has_new_topics)
        deleted = [topic.name for topic in delta.topics_deleted.values()]
        if deleted:
            self._groups.on_topics_deleted(deleted)
            self._shares.coordinator.on_topics_deleted(delta.topics_deleted)
            self._shares.groups.on_topics_deleted(delta.topics_deleted)
        self._coordinators.image_changed(delta, image)

    def _partitions_opened(self, partitions: Sequence[Partition]) -> None:
        """Partitions whose turn came after the image that places them was applied."""
        self._directories.opened()
        self._coordinators.opened(partitions, self._metadata.image)
