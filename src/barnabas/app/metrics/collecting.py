"""A node's figures: what is behind `GET /metrics`.

`collect` runs on the node's event loop and gives it back between parts; what it returns needs
nothing of the node any more, so that the thread of the HTTP server makes the text.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from barnabas import __version__
from barnabas.app.metrics.catalog import FAMILIES
from barnabas.app.metrics.client_figures import pushed_metrics
from barnabas.app.metrics.group_figures import GroupFigures, RecordTimes, RemoteEnds
from barnabas.app.metrics.partition_figures import (
    ClusterTotals,
    PartitionColumns,
    PartitionLabels,
    cluster_totals,
    topic_columns,
)
from barnabas.node.loop.histogram import Histogram, quantiles
from barnabas.node.metadata.image import MetadataImage
from barnabas.node.metadata.replay import ImageDelta
from barnabas.node.net.request_times import (
    FETCH_KEY,
    FOLLOWER_FETCH_KEY,
    TICK_MS,
    WINDOW_TICKS,
    ApiTimes,
    RequestTimes,
)
from barnabas.node.replication.traffic import TopicTraffic
from barnabas.node.security.quotas.client_quotas import Figure
from barnabas.protocol.apis import APIS, ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.web.metrics import Exposition

if TYPE_CHECKING:
    from barnabas.app.broker_role import BrokerRole
    from barnabas.app.node import Node

SLICE_S: Final = 0.001
"""The loop goes on with other work after this."""
PARTITIONS_PER_LOOK: Final = 32
QUANTILES: Final = {
    "0.50": 0.5,
    "0.75": 0.75,
    "0.95": 0.95,
    "0.98": 0.98,
    "0.99": 0.99,
    "0.999": 0.999,
}
"""As the labels of the JMX exporter have them."""
RUNNING: Final = 3
STARTING: Final = 1
TRAFFIC: Final = {
    "messagesin": "messages_in",
    "bytesin": "bytes_in",
    "bytesout": "bytes_out",
    "bytesrejected": "bytes_rejected",
    "totalproducerequests": "produces",
    "totalfetchrequests": "fetches",
    "failedproducerequests": "failed_produces",
    "failedfetchrequests": "failed_fetches",
    "totalsharefetchrequests": "share_fetches",
    "failedsharefetchrequests": "failed_share_fetches",
    "totalshareacknowledgementrequests": "share_acknowledgements",
    "failedshareacknowledgementrequests": "failed_share_acknowledgements",
    "invalidmessagecrcrecords": "invalid_crcs",
    "invalidoffsetorsequencerecords": "invalid_sequences",
}
"""Fields of `TopicTraffic`, by the names of their families."""
TIMES: Final = {
    "totaltimems": "total",
    "requestqueuetimems": "queue",
    "localtimems": "local",
    "remotetimems": "remote",
    "responsequeuetimems": "response_queue",
    "responsesendtimems": "send",
}
"""Histograms of `ApiTimes`, by the names of their families."""

Show = Callable[[Exposition], None]
"""Adds figures to the text; a thread may do it."""
TICKS_PER_LOOK: Final = 50
"""Of how busy it is: once a second."""


class NodeFigures:
    """The measurements of a node, from `start` to `close`."""

    def __init__(self, node: "Node") -> None:
        self._node = node
        self._times = node.times or RequestTimes(time.perf_counter_ns)
        self._loop_watch = LoopWatch(self._times.tick)
        self._labels = PartitionLabels()
        broker = node.played_broker
        self._remote = None if broker is None else RemoteEnds(broker, node.clock)
        self._record_times = RecordTimes()
        self._elections = self._unclean_elections = 0
        self._cluster: tuple[MetadataImage, ClusterTotals] | None = None

    def start(self) -> None:
        """Begin to watch the running loop, and elections."""
        self._loop_watch.start()
        if self._remote is not None:
            self._remote.start()
        self._node.metadata.add_listener(self._image_changed)

    def close(self) -> None:
        """Watch no more."""
        self._loop_watch.close()
        if self._remote is not None:
            self._remote.close()

    # -- what is asked on the node's loop

    def figures(self) -> Iterator[Figure]:
        """Those of quotas, logins and certificates."""
        return self._node.figures()

    def not_ready(self) -> str | None:
        """Why it cannot serve clients now."""
        return self._node.not_ready()

    async def collect(self) -> list[Show]:
        """All others, in turns with other work."""
        started = time.perf_counter()
        shows: list[Show] = []
        broker = self._node.played_broker
        if broker is not None:
            columns = await self._partitions(broker)
            shows.append(lambda text: columns.show(text, self._labels))
            shows.append(await self._broker(broker, columns))
            if self._remote is not None:
                groups = GroupFigures(broker, self._node.clock, self._remote, self._record_times)
                await groups.collect()
                shows.append(groups.show)
            telemetry = broker.services.client_telemetry
            if telemetry is not None:
                shows.append(pushed_metrics(telemetry, self._node.clock.monotonic_ms()))
        shows.append(self._requests())
        shows.append(self._metadata())
        loop = self._loop(time.perf_counter() - started)
        shows.append(loop)
        return shows

    # -- parts

    async def _partitions(self, broker: "BrokerRole") -> PartitionColumns:
        late_ms = self._node.config.get_int("transaction.max.timeout.ms") + 300_000
        columns = PartitionColumns(late_ms, self._node.clock.now_ms())
        end = time.perf_counter() + SLICE_S
        for number, partition in enumerate(broker.replicas, 1):
            columns.look(partition)
            if number % PARTITIONS_PER_LOOK == 0 and time.perf_counter() >= end:
                await asyncio.sleep(0)
                end = time.perf_counter() + SLICE_S
        return columns

    async def _broker(self, broker: "BrokerRole", columns: PartitionColumns) -> Show:
        traffic = broker.replicas.context.traffic
        every = [(topic, _counts(found)) for topic, found in traffic.by_topic.items()]
        total = _counts(traffic.of_all())
        noted: list[tuple[str, float, dict[str, str]]] = []

        def note(name: str, value: float, **labels: str) -> None:
            noted.append((name, value, labels))

        note(
            "kafka_server_brokertopicmetrics_replicationbytesin_total", traffic.replication_bytes_in
        )
        note(
            "kafka_server_brokertopicmetrics_replicationbytesout_total",
            traffic.replication_bytes_out,
        )
        totals = columns.totals
        manager = "kafka_server_replicamanager_"
        offline = totals.offline + broker.replicas.failed_count
        note(f"{manager}partitioncount", totals.partitions)
        note(f"{manager}leadercount", totals.led)
        note(f"{manager}offlinereplicacount", offline)
        note(f"{manager}underreplicatedpartitions", totals.under_replicated)
        note(f"{manager}underminisrpartitioncount", totals.under_min_isr)
        note(f"{manager}atminisrpartitioncount", totals.at_min_isr)
        note(f"{manager}partitionswithlatetransactionscount", totals.late_transactions)
        note(f"{manager}produceridcount", totals.producers)
        note(f"{manager}isrshrinks_total", traffic.isr_shrinks)
        note(f"{manager}isrexpands_total", traffic.isr_expands)
        note(f"{manager}failedisrupdates_total", traffic.failed_isr_updates)
        for operation, size, count in (
            ("Produce", totals.produce_waits, totals.produce_waits),
            ("Fetch", totals.fetch_waits, len(totals.waiting_fetches)),
            ("DeleteRecords", totals.delete_waits, totals.delete_waits),
        ):
            purgatory = "kafka_server_delayedoperationpurgatory_"
            note(f"{purgatory}purgatorysize", size, delayedOperation=operation)
            note(f"{purgatory}numdelayedoperations", count, delayedOperation=operation)
        sessions = len(broker.services.fetch_sessions)
        note("kafka_server_fetchsessioncache_numincrementalfetchsessions", sessions)
        is_ready = self._node.not_ready() is None
        note("kafka_server_kafkaserver_brokerstate", RUNNING if is_ready else STARTING)
        self._note_logs(broker, totals.bytes_by_directory, note)
        await asyncio.sleep(0)
        lags = await self._follower_lags(broker)

        def show(text: Exposition) -> None:
            for topic, counts in [(None, total), *every]:
                labels = {} if topic is None else {"topic": topic}
                for name, value in counts.items():
                    text.add(f"kafka_server_brokertopicmetrics_{name}_total", value, **labels)
            for name, figure, tags in noted:
                text.add(name, figure, **tags)
            lags(text)

        return show

    def _note_logs(
        self, broker: "BrokerRole", sizes: dict[str, int], note: Callable[..., None]
    ) -> None:
        logs, compactor = broker.logs, broker.compactor
        note("kafka_log_logmanager_offlinelogdirectorycount", len(logs.offline_dirs))
        for directory in logs.log_dirs:
            is_offline = directory in logs.offline_dirs
            note("kafka_log_logmanager_logdirectoryoffline", +is_offline, logDirectory=directory)
            note("barnabas_log_directory_size_bytes", sizes.get(directory, 0), directory=directory)
            if not is_offline:
                total_bytes, free_bytes = logs.volume_bytes(directory)
                if total_bytes >= 0:
                    note("barnabas_log_directory_total_bytes", total_bytes, directory=directory)
                    note("barnabas_log_directory_free_bytes", free_bytes, directory=directory)
        cleaner, manager = "kafka_log_logcleaner_", "kafka_log_logcleanermanager_"
        utilization = compactor.last_map_utilization * 100
        note(f"{cleaner}max_clean_time_secs", compactor.last_round_duration_ms / 1000)
        note(f"{cleaner}max_buffer_utilization_percent", utilization)
        note(f"{cleaner}max_compaction_delay_secs", compactor.last_delay_ms_max / 1000)
        note(f"{cleaner}deadthreadcount", 0)
        note(f"{manager}max_dirty_percent", compactor.last_dirty_ratio_max * 100)
        if compactor.last_look_ms:
            since_ms = max(0, self._node.clock.now_ms() - compactor.last_look_ms)
            note(f"{manager}time_since_last_run_ms", since_ms)
        note(f"{manager}uncleanable_partitions_count", len(compactor.uncleanable))
        note("barnabas_compaction_rounds_total", compactor.rounds)
        note("barnabas_compaction_failures_total", compactor.failures)
        note("barnabas_compaction_read_bytes_total", compactor.bytes_read)
        note("barnabas_compaction_written_bytes_total", compactor.bytes_written)

    async def _follower_lags(self, broker: "BrokerRole") -> Show:
        lags: list[tuple[str, str, int, int]] = []
        most = failing = 0
        for client_id, fetcher in broker.replicas.fetchers.fetchers():
            failing += fetcher.failing_count
            for number, (partition, lag) in enumerate(fetcher.lags(), 1):
                lags.append((client_id, *partition.topic_partition, lag))
                most = max(most, lag)
                if number % 1000 == 0:
                    await asyncio.sleep(0)

        def show(text: Exposition) -> None:
            prefix = "kafka_server_replicafetchermanager_"
            text.add(f"{prefix}maxlag", most, clientId="Replica")
            text.add(f"{prefix}failedpartitionscount", failing, clientId="Replica")
            for client_id, topic, index, lag in lags:
                text.add(
                    "kafka_server_fetcherlagmetrics_consumerlag",
                    lag,
                    clientId=client_id,
                    partition=str(index),
                    topic=topic,
                )

        return show

    def _requests(self) -> Show:
        by_name: dict[str, list[ApiTimes]] = {}
        for key, times in self._times.items():
            if key in (FETCH_KEY, FOLLOWER_FETCH_KEY):
                kind = "FetchConsumer" if key == FETCH_KEY else "FetchFollower"
                by_name[kind] = [times]
                by_name.setdefault("Fetch", []).append(times)
            elif key in APIS:
                by_name[request_name(key)] = [times]
        measured: list[tuple[str, str, int, list[float]]] = []
        for name, found in by_name.items():
            count = sum(times.count for times in found)
            for family, field in TIMES.items():
                histograms: list[Histogram] = [getattr(times, field) for times in found]
                values = [value / 1000 for value in quantiles(histograms, [*QUANTILES.values()])]
                measured.append((name, family, count, values))
        errors = list(self._times.errors.items())
        counts = {name: sum(times.count for times in found) for name, found in by_name.items()}
        connections = [
            figures for role in self._node.roles for figures in role.server.connection_figures()
        ]

        def show(text: Exposition) -> None:
            prefix = "kafka_network_requestmetrics_"
            for name, count in counts.items():
                text.add(f"{prefix}requests_total", count, request=name)
            for (key, code), count in errors:
                error = ErrorCode.of(code).name
                name = request_name(key)
                text.add(f"{prefix}errors_total", count, error=error, request=name)
            for name, family, count, values in measured:
                for quantile, value in zip(QUANTILES, values, strict=True):
                    text.add(f"{prefix}{family}", value, quantile=quantile, request=name)
                text.add(f"{prefix}{family}", count, "_count", request=name)
            for listener, count, rate in connections:
                prefix_of_sockets = "kafka_server_socketservermetrics_"
                text.add(f"{prefix_of_sockets}connection_count", count, listener=listener)
                text.add(f"{prefix_of_sockets}connection_accept_rate", rate, listener=listener)

        return show

    def _metadata(self) -> Show:
        node, raft = self._node, self._node.metadata.raft
        image, controller = node.metadata.image, node.metadata.controller
        now_ms, monotonic_ms = node.clock.now_ms(), node.clock.monotonic_ms()
        is_active = controller is not None and controller.is_active
        voters = {key.id for key in (voter.key for voter in raft.voters.by_id.values())}
        replicas = [
            (
                str(key.id),
                "voter" if key.id in voters else "observer",
                max(0, raft.log_end_offset - max(found.end_offset, 0)),
                max(0, monotonic_ms - found.last_fetch_ms) / 1000
                if found.last_fetch_ms >= 0
                else None,
            )
            for key, found in raft.progress.items()
            if key.id != node.config.node_id
        ]
        quorum = {
            "current_leader": raft.leader_id,
            "current_epoch": raft.epoch,
            "high_watermark": raft.high_watermark,
            "log_end_offset": raft.log_end_offset,
            "number_of_voters": len(voters),
        }
        if raft.is_leader:
            observers = [role for _, role, _, _ in replicas if role == "observer"]
            quorum["number_of_observers"] = len(observers)
        state = raft.role.name.lower()
        if state == "follower" and not raft.is_voter:
            state = "observer"
        elections, unclean = self._elections, self._unclean_elections

        def show(text: Exposition) -> None:
            prefix = "kafka_server_raft_metrics_"
            for name, value in quorum.items():
                text.add(f"{prefix}{name}", value)
            text.add(f"{prefix}current_state_info", 1, state=state)
            for replica, role, lag, age_s in replicas:
                text.add("barnabas_quorum_replica_lag", lag, replica=replica, role=role)
                if age_s is not None:
                    name = "barnabas_quorum_replica_fetch_age_seconds"
                    text.add(name, age_s, replica=replica, role=role)
            name = "kafka_server_broker_metadata_metrics_last_applied_record_offset"
            text.add(name, image.offset)
            totals = self._totals(image)
            if node.played_broker is not None:
                name = "kafka_server_replicamanager_reassigningpartitions"
                text.add(name, totals.reassigning_here)
            if controller is None:
                return
            prefix = "kafka_controller_kafkacontroller_"
            brokers = image.brokers.values()
            text.add(f"{prefix}activecontrollercount", +is_active)
            text.add(f"{prefix}activebrokercount", sum(not broker.fenced for broker in brokers))
            text.add(f"{prefix}fencedbrokercount", sum(broker.fenced for broker in brokers))
            text.add(f"{prefix}globaltopiccount", totals.topics)
            text.add(f"{prefix}globalpartitioncount", totals.partitions)
            text.add(f"{prefix}offlinepartitionscount", totals.leaderless)
            text.add(f"{prefix}preferredreplicaimbalancecount", totals.not_preferred)
            text.add(f"{prefix}lastappliedrecordoffset", image.offset)
            text.add(f"{prefix}lastappliedrecordtimestamp", image.timestamp_ms)
            lag_ms = 0 if is_active else max(0, now_ms - image.timestamp_ms)
            text.add(f"{prefix}lastappliedrecordlagms", lag_ms)
            prefix = "kafka_controller_controllerstats_"
            text.add(f"{prefix}leaderelectionrateandtimems", elections, "_count")
            text.add(f"{prefix}uncleanleaderelections_total", unclean)
            if is_active:
                topic_columns(text, image)

        return show

    def _totals(self, image: MetadataImage) -> ClusterTotals:
        """Of the image's topics: counted again when they have changed."""
        known = self._cluster
        if known is None or known[0].topics is not image.topics:
            known = self._cluster = (
                image,
                cluster_totals(image, self._node.config.node_id),
            )
        return known[1]

    def _loop(self, duration_s: float) -> Show:
        watch = self._loop_watch
        values = [value / 1e6 for value in quantiles([watch.lag], [*QUANTILES.values()])]
        count, total_s, longest_s = watch.lag.count, watch.lag.total / 1e6, watch.lag.longest / 1e6
        idle = round(watch.idle_share, 4)

        def show(text: Exposition) -> None:
            name = "barnabas_event_loop_lag_seconds"
            for quantile, value in zip(QUANTILES, values, strict=True):
                text.add(name, value, quantile=quantile)
            text.add(name, total_s, "_sum")
            text.add(name, count, "_count")
            text.add("barnabas_event_loop_longest_step_seconds", longest_s)
            text.add("kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent", idle)
            text.add("kafka_network_socketserver_networkprocessoravgidle_percent", idle)
            text.add("barnabas_metrics_collection_seconds", duration_s)
            text.add("barnabas_build_info", 1, version=__version__)

        return show

    # -- events between scrapes

    def _image_changed(self, delta: ImageDelta, image: MetadataImage) -> None:
        """Count elections. Source: Kafka's ControllerMetricsChanges."""
        for topic_id, changes in delta.topics.items():
            topic = image.topics.by_id.get(topic_id)
            if topic is None:
                continue
            for index in changes.changed:
                before, now = changes.base.get(index), topic.partitions[index]
                if before is None or now.leader in (before.leader, -1):
                    continue
                self._elections += 1
                if now.leader not in before.isr and now.leader not in before.elr:
                    self._unclean_elections += 1


def exposition(shows: list[Show]) -> Exposition:
    """The text of what was collected. A thread may make it."""
    text = Exposition(FAMILIES)
    for show in shows:
        show(text)
    return text


def request_name(key: int) -> str:
    """Kafka's name of an API, such as `OffsetCommit`."""
    return APIS[ApiKey(key)].request.__name__.removesuffix("Request")


def _counts(traffic: TopicTraffic) -> dict[str, int]:
    return {name: getattr(traffic, field) for name, field in TRAFFIC.items()}


class LoopWatch:
    """From `start` to `close`, on the running event loop."""

    def __init__(self, on_tick: Callable[[], None] | None = None) -> None:
        """`on_tick` is called every TICK_MS."""
        self._on_tick = on_tick
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0
        self._ticks = 0
        self._looked: tuple[float, float] = (0.0, 0.0)
        self.lag = Histogram()
        """In microseconds: the time by which a timer was late."""
        self.idle_share = 1.0
        """Of the last second, the share in which the loop's thread did nothing."""

    def start(self) -> None:
        """Begin to watch."""
        self._looked = (time.perf_counter(), time.thread_time())
        self._arm(asyncio.get_running_loop())

    def close(self) -> None:
        """Watch no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self, loop: asyncio.AbstractEventLoop) -> None:
        self._due = loop.time() + TICK_MS / 1000
        self._timer = loop.call_at(self._due, self._tick, loop)

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        self.lag.add(int((loop.time() - self._due) * 1_000_000))
        self._ticks += 1
        if self._ticks % TICKS_PER_LOOK == 0:
            before, busy_before = self._looked
            now, busy = self._looked = (time.perf_counter(), time.thread_time())
            self.idle_share = max(0.0, 1 - (busy - busy_before) / max(now - before, 1e-9))
        if self._ticks % WINDOW_TICKS == 0:
            self.lag.turn()
        if self._on_tick is not None:
            self._on_tick()
        self._arm(loop)
