"""The figures that are compared: their names, units, which way is better, and the aims."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median


@dataclass(frozen=True, slots=True)
class Figure:
    """`aim` is the ratio of Barnabas to its rival to reach: a minimum where more is better.

    `aim_value` is the aim in the figure's own unit, independent of the rival.
    """

    name: str
    label: str
    unit: str
    more_is_better: bool
    aim: float | None = None
    digits: int = 1
    aim_value: float | None = None

    def is_as_good_as(self, value: float, aim: float) -> bool:
        return value >= aim if self.more_is_better else value <= aim


FIGURES = (
    Figure("produce_1000_mb_s", "Produce, 1000-byte records", "MB/s", True, 1.8),
    Figure("produce_100_mb_s", "Produce, 100-byte records", "MB/s", True, 1.3),
    Figure("produce_1000_large_mb_s", "Produce, 1000-byte records, 128 KB batches", "MB/s", True),
    Figure("produce_100_large_mb_s", "Produce, 100-byte records, 128 KB batches", "MB/s", True),
    Figure("produce_single_requests_s", "Produce, one record per request", "req/s", True, 1.5, 0),
    Figure("consume_cold_mb_s", "Consume, cold", "MB/s", True, 1.0),
    Figure("consume_raw_mb_s", "Consume, cold, bare client", "MB/s", True, 1.0),
    Figure("consume_tail_mb_s", "Consume, following a producer", "MB/s", True, 1.0),
    Figure("latency_p50_ms", "End-to-end latency at 1,000 records/s, p50", "ms", False, 1.0, 2),
    Figure("latency_p99_ms", "End-to-end latency, p99", "ms", False, 1.0, 2),
    Figure("latency_p999_ms", "End-to-end latency, p99.9", "ms", False, 1.0, 2),
    Figure("tenant_alone_p99_ms", "p99 of a client alone", "ms", False, None, 2),
    Figure("tenant_beside_p99_ms", "p99 beside one at ten times its quota", "ms", False, 1.0, 2),
    Figure("tenant_p99_ratio", "The second by the first", "", False, None, 2, 1.2),
    Figure("produce_cpu_s_per_gb", "Broker CPU per GB produced", "s", False, 0.35, 2),
    Figure("produce_large_cpu_s_per_gb", "Broker CPU per GB, 128 KB batches", "s", False, None, 2),
    Figure("consume_cpu_s_per_gb", "Broker CPU per GB consumed", "s", False, 0.35, 2),
    Figure("produce_single_cpu_s_per_100k", "Broker CPU per 100,000 requests", "s", False, 0.35, 2),
    Figure("transactions_100_mb_s", "Produce, transactions of 100 ms", "MB/s", True, 1.0),
    Figure("transactions_10_mb_s", "Produce, transactions of 10 ms", "MB/s", True, 1.0),
    Figure("transactions_cpu_s_per_gb", "Broker CPU per GB, 100 ms", "s", False, None, 2),
    Figure("commits_s", "Offset commits, 20 groups", "req/s", True, 1.0, 0),
    Figure("commits_cpu_s_per_100k", "Broker CPU per 100,000 commits", "s", False, None, 2),
    Figure("group_classic_stable_s", "100 members join, classic", "s", False, 1.0, 2),
    Figure("group_consumer_stable_s", "100 members join, consumer", "s", False, 1.0, 2),
    Figure("share_mb_s", "Share group, one member", "MB/s", True, 1.0),
    Figure("share_cpu_s_per_gb", "Broker CPU per GB shared", "s", False, None, 2),
    Figure("compaction_mb_s", "Compaction", "MB/s", True, 1.0),
    Figure("compaction_cpu_s_per_gb", "Broker CPU per GB compacted", "s", False, 1.0, 2),
    Figure("tls_produce_mb_s", "TLS: produce, 1000-byte records", "MB/s", True, 1.3),
    Figure("tls_produce_cpu_s_per_gb", "TLS: broker CPU per GB produced", "s", False, 0.5, 2),
    Figure("tls_produce_large_mb_s", "TLS: produce, 128 KB batches", "MB/s", True, 1.3),
    Figure("tls_produce_large_cpu_s_per_gb", "TLS: CPU per GB, 128 KB batches", "s", False, 0.5, 2),
    Figure("tls_consume_mb_s", "TLS: consume, bare client", "MB/s", True, 1.3),
    Figure("tls_consume_cpu_s_per_gb", "TLS: broker CPU per GB consumed", "s", False, 0.5, 2),
    Figure("tls_connections_s", "TLS: connections opened", "1/s", True, 1.0, 0),
    Figure("tls_connection_cpu_ms", "TLS: broker CPU per connection", "ms", False, None, 2),
    Figure("scram_connections_s", "SCRAM: connections opened", "1/s", True, 1.0, 0),
    Figure("scram_connection_cpu_ms", "SCRAM: broker CPU per connection", "ms", False, None, 2),
    Figure("startup_s", "Start-up to first produced record", "s", False, 0.5, 2),
    Figure("memory_idle_mb", "Memory, idle", "MB", False, None),
    Figure("memory_load_mb", "Memory, after the load", "MB", False, 0.1),
    Figure("memory_partitions_mb", "Memory, with 1,000 more partitions", "MB", False, None),
    Figure("memory_connections_mb", "Memory, with 1,000 more connections", "MB", False, None),
    Figure("cluster_startup_s", "Three nodes: start-up to first record", "s", False, 1.0, 2),
    Figure("cluster_produce_mb_s", "Three nodes: replicated produce", "MB/s", True, 1.5),
    Figure("cluster_produce_cpu_s_per_gb", "Three nodes: CPU per GB, all nodes", "s", False, 1.0),
    Figure("cluster_latency_p50_ms", "Three nodes: latency, p50", "ms", False, 1.0, 2),
    Figure("cluster_latency_p99_ms", "Three nodes: latency, p99", "ms", False, 1.0, 2),
    Figure("cluster_catch_up_mb_s", "Returning follower: catching up", "MB/s", True, 1.0),
    Figure("cluster_return_s", "Returning follower: start to in sync", "s", False, 1.0, 2),
    Figure("cluster_failover_s", "A leader killed: no write for", "s", False, 1.0, 2, 3.0),
    Figure(
        "cluster_failover_controller_s", "Leader and controller killed: no write for",
        "s", False, 1.0, 2, 3.0,
    ),
    Figure("cluster_failover_tuned_s", "A leader killed, short time-outs", "s", False, 1.0, 2),
    Figure(
        "cluster_failover_controller_tuned_s", "Leader and controller, short time-outs",
        "s", False, 1.0, 2,
    ),
    Figure("cluster_restart_s", "All killed: restart to first write", "s", False, 1.0, 2, 5.0),
    Figure("cluster_create_s", "2,000 replicated partitions made", "s", False, 1.0, 2),
    Figure("cluster_controller_s", "Controller killed, 5,000 partitions", "s", False, 1.0, 2),
    Figure("cluster_leaders_s", "The same, until all have leaders", "s", False, 1.0, 2),
    Figure("cluster_memory_idle_mb", "Memory of one of three nodes, idle", "MB", False, None),
    Figure("cluster_memory_load_mb", "Memory of one of three nodes, loaded", "MB", False, 0.1),
    Figure("cluster_memory_partitions_mb", "The same, with 2,000 partitions", "MB", False, 0.1),
    Figure("cluster_memory_partition_kb", "Memory grown by, per partition", "KB", False, 1.0),
)  # fmt: skip

REGISTRY_FIGURES = (
    Figure("registry_id_8_s", "Schema by id, 8 connections", "req/s", True, 2.0, 0),
    Figure("registry_id_8_p99_ms", "The same, p99", "ms", False, None, 2),
    Figure("registry_id_32_s", "Schema by id, 32 connections", "req/s", True, 2.0, 0),
    Figure("registry_id_32_p99_ms", "The same, p99", "ms", False, None, 2),
    Figure("registry_id_cpu_us", "CPU per schema by id", "µs", False, None, 0),
    Figure("registry_latest_8_s", "Latest version, 8 connections", "req/s", True, 2.0, 0),
    Figure("registry_latest_8_p99_ms", "The same, p99", "ms", False, None, 2),
    Figure("registry_latest_32_s", "Latest version, 32 connections", "req/s", True, 2.0, 0),
    Figure("registry_latest_32_p99_ms", "The same, p99", "ms", False, None, 2),
    Figure("registry_latest_cpu_us", "CPU per latest version", "µs", False, None, 0),
    Figure("registry_register_1_s", "New schemas registered, 1 client", "req/s", True, 2.0, 0),
    Figure("registry_register_1_p99_ms", "The same, p99", "ms", False, None, 2),
    Figure("registry_register_32_s", "New schemas registered, 32 clients", "req/s", True, 2.0, 0),
    Figure("registry_register_32_p99_ms", "The same, p99", "ms", False, None, 2),
    Figure("registry_register_cpu_us", "CPU per registration, 32 clients", "µs", False, None, 0),
    Figure("registry_again_s", "Registered again, 32 clients", "req/s", True, 2.0, 0),
    Figure("registry_startup_s", "Start-up with 10,000 schemas", "s", False, None, 2),
    Figure("registry_memory_idle_mb", "Memory, no schemas", "MB", False, 0.5),
    Figure("registry_memory_schemas_mb", "Memory with 10,000 schemas", "MB", False, 0.5),
    Figure("registry_memory_load_mb", "Memory with all that it has registered", "MB", False),
)
"""Of the schema registry, beside Karapace."""

QUERY_FIGURES = (
    Figure("query_filter_s", "Filter", "events/s", True, None, 0),
    Figure("query_count_s", "Windowed count", "events/s", True, None, 0),
    Figure("query_join_s", "Stream joined to a table", "events/s", True, None, 0),
    Figure("query_streams_s", "Stream joined to a stream within 10 s", "events/s", True, None, 0),
    Figure("query_sessions_s", "Session windows", "events/s", True, None, 0),
    Figure("query_avro_s", "Filter, Avro in and out", "events/s", True, None, 0),
    Figure("query_exactly_once_s", "Windowed count, exactly once", "events/s", True, None, 0),
    Figure("query_one_core_s", "Windowed count on one core", "events/s", True, None, 0),
    Figure("query_latency_p50_ms", "Count at 10,000 events/s, p50", "ms", False, None, 0, 1000),
    Figure("query_latency_p99_ms", "The same, p99", "ms", False, None, 0, 2000),
    Figure("query_highest_rate_s", "Highest rate with a p99 of 1 s", "events/s", True, None, 0),
    Figure("query_filter_cpu_us", "CPU of all processes per event, filter", "µs", False, None, 1),
    Figure("query_count_cpu_us", "The same, windowed count", "µs", False, None, 1),
    Figure("query_join_cpu_us", "The same, join to a table", "µs", False, None, 1),
    Figure("query_streams_cpu_us", "The same, join of streams", "µs", False, None, 1),
    Figure("query_sessions_cpu_us", "The same, session windows", "µs", False, None, 1),
    Figure("query_avro_cpu_us", "The same, Avro", "µs", False, None, 1),
    Figure("query_count_memory_mb", "Memory of all processes, count", "MB", False, None, 0),
    Figure("query_filter_first_s", "Start to first result, filter", "s", False, None, 2),
    Figure("query_count_first_s", "Start to first result, windowed count", "s", False, None, 2),
    Figure("query_join_first_s", "Start to first result, join", "s", False, None, 2),
)  # fmt: skip
"""Of SQL over streams, beside Kafka Streams."""

_SPARK_AIMS = {
    "query_filter_s": 0.77,
    "query_count_s": 0.77,
    "query_filter_cpu_us": 1.3,
    "query_count_cpu_us": 1.3,
}
QUERY_RIVALS = (
    ("streams", "Kafka Streams", QUERY_FIGURES),
    ("alone", "Barnabas, own micro-batches", QUERY_FIGURES),
    (
        "spark",
        "Plain Spark SQL",
        tuple(replace(one, aim=_SPARK_AIMS.get(one.name)) for one in QUERY_FIGURES),
    ),
    ("flink", "Flink SQL", QUERY_FIGURES),
)
"""(engine, its name in the tables, the figures): what our SQL is held against."""

PULL_FIGURES = (
    Figure("query_pull_p50_ms", "Pull query by key, p50", "ms", False, None, 1),
    Figure("query_pull_p99_ms", "Pull query by key, p99", "ms", False, None, 1, 10),
)
"""Which Kafka Streams does not have."""

CONNECT_FIGURES = (
    Figure("connect_file_source_s", "File to topic", "rows/s", True, None, 0),
    Figure("connect_file_source_p50_ms", "File to topic, 200 lines/s, p50", "ms", False, None, 0),
    Figure("connect_file_source_p99_ms", "The same, p99", "ms", False, None, 0),
    Figure("connect_file_source_mb", "File to topic, memory", "MB", False, None, 0),
    Figure("connect_file_sink_s", "Topic to file", "rows/s", True, None, 0),
    Figure("connect_file_sink_mb", "Topic to file, memory", "MB", False, None, 0),
    Figure("connect_mirror_mb_s", "Mirror", "MB/s", True),
    Figure("connect_mirror_p50_ms", "Mirror, 200 records/s, p50", "ms", False, None, 0),
    Figure("connect_mirror_p99_ms", "The same, p99", "ms", False, None, 0),
    Figure("connect_mirror_mb", "Mirror, memory", "MB", False, None, 0),
    Figure("connect_postgres_snapshot_s", "PostgreSQL: snapshot, reader", "rows/s", True, None, 0),
    Figure("connect_postgres_log_s", "PostgreSQL: log, reader", "rows/s", True, None, 0),
    Figure("connect_postgres_topic_s", "PostgreSQL: snapshot to topic", "rows/s", True, None, 0),
    Figure("connect_postgres_log_topic_s", "PostgreSQL: log to topic", "rows/s", True, None, 0),
    Figure("connect_postgres_p50_ms", "PostgreSQL: 200 rows/s, p50", "ms", False, None, 0),
    Figure("connect_postgres_p99_ms", "The same, p99", "ms", False, None, 0),
    Figure("connect_postgres_mb", "PostgreSQL: memory", "MB", False, None, 0),
    Figure("connect_jdbc_source_s", "JDBC: query, reader", "rows/s", True, None, 0),
    Figure("connect_jdbc_new_s", "JDBC: upsert, new rows, writer", "rows/s", True, None, 0),
    Figure("connect_jdbc_upsert_s", "JDBC: upsert, rows that are there", "rows/s", True, None, 0),
    Figure("connect_jdbc_topic_s", "JDBC: topic to table, upserts", "rows/s", True, None, 0),
    Figure("connect_jdbc_mb", "JDBC sink: memory", "MB", False, None, 0),
    Figure("connect_iceberg_topic_s", "Iceberg: topic to table", "rows/s", True, None, 0),
    Figure("connect_iceberg_mb", "Iceberg: memory", "MB", False, None, 0),
    Figure("connect_s3_topic_s", "S3: topic to bucket, JSON", "rows/s", True, None, 0),
    Figure("connect_s3_mb", "S3: memory", "MB", False, None, 0),
    Figure("connect_s3_json_s", "S3: JSON, writer", "rows/s", True, None, 0),
    Figure("connect_s3_avro_s", "S3: Avro, writer", "rows/s", True, None, 0),
    Figure("connect_s3_parquet_s", "S3: Parquet, writer", "rows/s", True, None, 0),
    Figure("connect_s3_json_put_s", "S3: the same bytes put alone, JSON", "rows/s", True, None, 0),
    Figure("connect_s3_avro_put_s", "The same, Avro", "rows/s", True, None, 0),
    Figure("connect_s3_parquet_put_s", "The same, Parquet", "rows/s", True, None, 0),
    Figure("connect_json_write_us", "JSON with schema, written", "µs", False, None, 2),
    Figure("connect_json_read_us", "JSON with schema, read", "µs", False, None, 2),
    Figure("connect_json_plain_write_us", "JSON, written", "µs", False, None, 2),
    Figure("connect_json_plain_read_us", "JSON, read", "µs", False, None, 2),
    Figure("connect_avro_write_us", "Avro, written", "µs", False, None, 2),
    Figure("connect_avro_read_us", "Avro, read", "µs", False, None, 2),
    Figure("connect_json_schema_write_us", "JSON Schema, written", "µs", False, None, 2),
    Figure("connect_json_schema_read_us", "JSON Schema, read", "µs", False, None, 2),
    Figure("connect_protobuf_write_us", "Protobuf, written", "µs", False, None, 2),
    Figure("connect_protobuf_read_us", "Protobuf, read", "µs", False, None, 2),
    Figure("connect_InsertField_us", "InsertField", "µs", False, None, 2),
    Figure("connect_ReplaceField_us", "ReplaceField", "µs", False, None, 2),
    Figure("connect_Cast_us", "Cast", "µs", False, None, 2),
    Figure("connect_TimestampConverter_us", "TimestampConverter", "µs", False, None, 2),
    Figure("connect_RegexRouter_us", "RegexRouter", "µs", False, None, 2),
    Figure("connect_flow_us", "JSON read, InsertField, ReplaceField", "µs", False, None, 2),
)
"""Of connectors: by Kafka's worker, the plain driver, our worker, and ours on Spark."""

METRICS_FIGURES = (
    Figure("metrics_single_requests_s", "Produce, one record per request", "req/s", True, 0.98, 0),
    Figure(
        "metrics_batches_requests_s", "Produce, 1,000 records per request", "req/s", True, 0.98, 0
    ),
    Figure("metrics_single_cpu_us", "CPU per request of one record", "µs", False, None),
    Figure("metrics_batches_cpu_us", "CPU per request of 1,000 records", "µs", False, None),
)
SCRAPE_FIGURES = (
    Figure("metrics_scrape_ms", "Scrape of many partitions", "ms", False, None, 0, 200),
    Figure("metrics_step_ms", "Its longest step on the event loop", "ms", False, None, 1, 5),
)
NOT_THERE = {
    **dict.fromkeys(
        (("connect_jdbc_source_s", "kafka"), ("connect_s3_topic_s", "kafka")),
        "none in Maven Central",
    ),
    ("connect_iceberg_topic_s", "barnabas"): "Spark only",
}
"""Where a connector cannot be run, and why: (figure, who) → what the table says."""

LIMITS = (
    ("limit_receive_write_mb_s", "produce_1000_mb_s", "loop that receives and writes"),
    ("limit_sendfile_mb_s", "consume_raw_mb_s", "loop that sends a file"),
)
"""(limit, the figure that is held against it, what it is)."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One figure over all rounds: medians, and the ratio with its spread over the rounds."""

    figure: Figure
    rival: float
    barnabas: float
    ratio: float
    ratio_least: float
    ratio_most: float

    @property
    def reached(self) -> bool | None:
        """Return true if all aims were reached, None if there are no aims."""
        figure = self.figure
        aims = [(self.ratio, figure.aim), (self.barnabas, figure.aim_value)]
        held = [figure.is_as_good_as(value, aim) for value, aim in aims if aim is not None]
        return all(held) if held else None


Rounds = list[dict[str, dict[str, float]]]
"""Of each round: server → figure → value."""


def compare(
    rounds: Rounds, figures: Sequence[Figure] = FIGURES, rival: str = "kafka"
) -> list[Comparison]:
    """Every figure that both servers have in at least one same round, in order.

    The ratio is the median of the rounds' ratios: a slow phase of the machine hits both.
    """
    comparisons = []
    for figure in figures:
        pairs = [
            (each[rival][figure.name], each["barnabas"][figure.name])
            for each in rounds
            if figure.name in each.get(rival, {}) and figure.name in each.get("barnabas", {})
        ]
        if not pairs:
            continue
        ratios = [barnabas / other if other else float("inf") for other, barnabas in pairs]
        comparisons.append(
            Comparison(
                figure,
                rival=median(other for other, _ in pairs),
                barnabas=median(barnabas for _, barnabas in pairs),
                ratio=median(ratios),
                ratio_least=min(ratios),
                ratio_most=max(ratios),
            )
        )
    return comparisons


def alone(rounds: Rounds, figures: Sequence[Figure]) -> list[tuple[Figure, float, float, float]]:
    """Of figures that only Barnabas has: median, least and most over the rounds."""
    found = []
    for figure in figures:
        values = [
            each["barnabas"][figure.name]
            for each in rounds
            if figure.name in each.get("barnabas", {})
        ]
        if values:
            found.append((figure, median(values), min(values), max(values)))
    return found
