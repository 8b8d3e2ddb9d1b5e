"""Grafana dashboards of the platform's metrics: rows of panels, each a few queries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

SCHEMA_VERSION: Final = 39
"""Of dashboards: Grafana 11 writes it, later versions read it."""
WIDTH: Final = 24
HEIGHT: Final = 8
SOURCE: Final = {"type": "prometheus", "uid": "${source}"}
Queries = Mapping[str, str]
"""PromQL by the legend of its lines; {{label}} in a legend is the value of a label."""


@dataclass(frozen=True, slots=True)
class Panel:
    """Lines over time, or with `is_number` the last value."""

    title: str
    queries: Queries
    unit: str = "short"
    is_number: bool = False

    def as_json(self, panel_id: int, place: Mapping[str, int]) -> dict[str, Any]:
        """As Grafana's JSON model has it."""
        targets = [
            {"refId": chr(ord("A") + number), "expr": query, "legendFormat": legend}
            for number, (legend, query) in enumerate(self.queries.items())
        ]
        return {
            "id": panel_id,
            "type": "stat" if self.is_number else "timeseries",
            "title": self.title,
            "datasource": SOURCE,
            "gridPos": dict(place),
            "fieldConfig": {"defaults": {"unit": self.unit}, "overrides": []},
            "targets": targets,
        }


@dataclass(frozen=True, slots=True)
class Dashboard:
    """One dashboard; panels of a row share its width."""

    name: str
    title: str
    rows: Sequence[Sequence[Panel]]
    variables: Mapping[str, str] = field(default_factory=dict)
    """Names of variables, and the query whose values they have."""

    def as_json(self) -> dict[str, Any]:
        """As Grafana's JSON model has it."""
        panels: list[dict[str, Any]] = []
        for row, members in enumerate(self.rows):
            width = WIDTH // len(members)
            for column, panel in enumerate(members):
                place = {"x": column * width, "y": row * HEIGHT, "w": width, "h": HEIGHT}
                panels.append(panel.as_json(len(panels) + 1, place))
        source = {"name": "source", "type": "datasource", "query": "prometheus", "label": "Source"}
        variables = [
            {
                "name": name,
                "type": "query",
                "datasource": SOURCE,
                "query": query,
                "refresh": 2,
                "multi": True,
                "includeAll": True,
                "allValue": ".*",
                "current": {"text": "All", "value": "$__all"},
            }
            for name, query in self.variables.items()
        ]
        return {
            "uid": f"barnabas-{self.name}",
            "title": self.title,
            "tags": ["barnabas"],
            "schemaVersion": SCHEMA_VERSION,
            "editable": True,
            "refresh": "10s",
            "time": {"from": "now-1h", "to": "now"},
            "templating": {"list": [source, *variables]},
            "panels": panels,
        }

    def queries(self) -> list[str]:
        """All PromQL of its panels and variables."""
        queries_of_rows = [
            query for row in self.rows for panel in row for query in panel.queries.values()
        ]
        return [*queries_of_rows, *self.variables.values()]


def _number(title: str, query: str, unit: str = "short") -> Panel:
    return Panel(title, {"": query}, unit, is_number=True)


def _rate(family: str, by: str, where: str = "") -> str:
    return f"sum by ({by}) (rate({family}{where}[$__rate_interval]))"


def _rate_of_all(family: str, where: str = "") -> str:
    return f"sum(rate({family}{where}[$__rate_interval]))"


def _slowest(family: str) -> str:
    return f'{_REQUESTS}{family}{{request="Produce",quantile="0.99"}}'


_TRAFFIC: Final = "kafka_server_brokertopicmetrics_"
_REQUESTS: Final = "kafka_network_requestmetrics_"
_POOL: Final = "kafka_server_kafkarequesthandlerpool_"
_STATISTICS: Final = "kafka_controller_controllerstats_"
_PARTITION: Final = "kafka_cluster_partition_"
_SUM_BY_TOPIC: Final = "sum by (topic) "
_OF_TOPIC: Final = '{topic=~"$topic"}'
_OF_GROUP: Final = '{consumergroup=~"$group"}'


def _traffic(title: str, family: str, unit: str) -> Panel:
    return Panel(title, {"{{topic}}": _rate(f"{_TRAFFIC}{family}", "topic", _OF_TOPIC)}, unit)


CLUSTER: Final = Dashboard(
    "cluster",
    "Barnabas: cluster",
    [
        [
            _number("Brokers", "max(kafka_controller_kafkacontroller_activebrokercount)"),
            _number("Brokers down", "max(kafka_controller_kafkacontroller_fencedbrokercount)"),
            _number(
                "Offline partitions", "max(kafka_controller_kafkacontroller_offlinepartitionscount)"
            ),
            _number(
                "Under-replicated", "sum(kafka_server_replicamanager_underreplicatedpartitions)"
            ),
            _number("Under min ISR", "sum(kafka_server_replicamanager_underminisrpartitioncount)"),
            _number(
                "Active controllers", "sum(kafka_controller_kafkacontroller_activecontrollercount)"
            ),
        ],
        [
            Panel(
                "Bytes in and out",
                {
                    "in": f'sum(rate({_TRAFFIC}bytesin_total{{topic!=""}}[$__rate_interval]))',
                    "out": f'sum(rate({_TRAFFIC}bytesout_total{{topic!=""}}[$__rate_interval]))',
                },
                "Bps",
            ),
            Panel(
                "Records in by node",
                {"{{instance}}": _rate(f"{_TRAFFIC}messagesin_total", "instance", '{topic!=""}')},
                "wps",
            ),
            Panel(
                "Replication",
                {
                    "in {{instance}}": _rate(f"{_TRAFFIC}replicationbytesin_total", "instance"),
                    "lag {{instance}}": "kafka_server_replicafetchermanager_maxlag",
                },
            ),
        ],
        [
            Panel(
                "Requests", {"{{request}}": _rate(f"{_REQUESTS}requests_total", "request")}, "reqps"
            ),
            Panel(
                "Produce, 99th percentile",
                {
                    "total {{instance}}": _slowest("totaltimems"),
                    "local {{instance}}": _slowest("localtimems"),
                    "remote {{instance}}": _slowest("remotetimems"),
                },
                "ms",
            ),
            Panel(
                "Errors",
                {"{{request}} {{error}}": _rate(f"{_REQUESTS}errors_total", "request, error")},
            ),
        ],
        [
            Panel(
                "In-sync replicas",
                {
                    "shrinks": _rate_of_all("kafka_server_replicamanager_isrshrinks_total"),
                    "expands": _rate_of_all("kafka_server_replicamanager_isrexpands_total"),
                },
            ),
            Panel(
                "Elections",
                {
                    "all": f"max({_STATISTICS}leaderelectionrateandtimems_count)",
                    "unclean": f"max({_STATISTICS}uncleanleaderelections_total)",
                },
            ),
            Panel(
                "Quorum lag",
                {"{{role}} {{replica}}": "max by (role, replica) (barnabas_quorum_replica_lag)"},
            ),
        ],
        [
            Panel(
                "Event loop",
                {
                    "longest step {{instance}}": "barnabas_event_loop_longest_step_seconds",
                    "lag 99 % {{instance}}": 'barnabas_event_loop_lag_seconds{quantile="0.99"}',
                },
                "s",
            ),
            Panel(
                "Idle",
                {"{{instance}}": f"{_POOL}requesthandleravgidle_percent"},
                "percentunit",
            ),
            Panel("Memory", {"{{instance}}": "process_resident_memory_bytes"}, "bytes"),
            Panel(
                "Free disk",
                {"{{instance}} {{directory}}": "barnabas_log_directory_free_bytes"},
                "bytes",
            ),
        ],
        [
            Panel(
                "Connections",
                {"{{instance}} {{listener}}": "kafka_server_socketservermetrics_connection_count"},
            ),
            Panel(
                "Descriptors", {"{{instance}}": "process_open_fds / process_max_fds"}, "percentunit"
            ),
            Panel("Transactions", {"{{state}}": "sum by (state) (barnabas_transactions)"}),
            Panel("Oldest transaction", {"": "max(barnabas_transaction_oldest_open_seconds)"}, "s"),
        ],
    ],
)
TOPICS: Final = Dashboard(
    "topics",
    "Barnabas: topics",
    [
        [
            _traffic("Records in", "messagesin_total", "wps"),
            _traffic("Bytes in", "bytesin_total", "Bps"),
            _traffic("Bytes out", "bytesout_total", "Bps"),
        ],
        [
            Panel(
                "Size with replicas",
                {"{{topic}}": f"sum by (topic) (kafka_log_log_size{_OF_TOPIC})"},
                "bytes",
            ),
            Panel(
                "Records kept",
                {
                    "{{topic}}": f"sum by (topic) (kafka_topic_partition_current_offset{_OF_TOPIC}"
                    f" - kafka_topic_partition_oldest_offset{_OF_TOPIC})"
                },
            ),
            Panel(
                "Partitions", {"{{topic}}": f"max by (topic) (kafka_topic_partitions{_OF_TOPIC})"}
            ),
        ],
        [
            Panel(
                "Under-replicated",
                {"{{topic}}": f"{_SUM_BY_TOPIC}({_PARTITION}underreplicated{_OF_TOPIC})"},
            ),
            Panel(
                "Held back by transactions",
                {"{{topic}}": f"{_SUM_BY_TOPIC}({_PARTITION}laststableoffsetlag{_OF_TOPIC})"},
            ),
            Panel(
                "Failed requests",
                {
                    "produce {{topic}}": _rate(
                        f"{_TRAFFIC}failedproducerequests_total", "topic", _OF_TOPIC
                    ),
                    "fetch {{topic}}": _rate(
                        f"{_TRAFFIC}failedfetchrequests_total", "topic", _OF_TOPIC
                    ),
                    "share fetch {{topic}}": _rate(
                        f"{_TRAFFIC}failedsharefetchrequests_total", "topic", _OF_TOPIC
                    ),
                    "acknowledgement {{topic}}": _rate(
                        f"{_TRAFFIC}failedshareacknowledgementrequests_total", "topic", _OF_TOPIC
                    ),
                },
            ),
        ],
    ],
    {"topic": "label_values(kafka_topic_partitions, topic)"},
)
GROUPS: Final = Dashboard(
    "groups",
    "Barnabas: consumer groups",
    [
        [
            Panel(
                "Lag in records",
                {
                    "{{consumergroup}} {{topic}}": "sum by (consumergroup, topic) "
                    f"(kafka_consumergroup_lag_sum{_OF_GROUP})"
                },
            ),
            Panel(
                "Lag in seconds",
                {
                    "{{consumergroup}} {{topic}}": "max by (consumergroup, topic) "
                    f"(kafka_consumergroup_lag_seconds{_OF_GROUP})"
                },
                "s",
            ),
        ],
        [
            Panel(
                "Records committed a second",
                {
                    "{{consumergroup}} {{topic}}": "sum by (consumergroup, topic) "
                    f"(rate(kafka_consumergroup_current_offset{_OF_GROUP}[$__rate_interval]))"
                },
            ),
            Panel(
                "Members",
                {
                    "{{consumergroup}}": "max by (consumergroup) "
                    f"(kafka_consumergroup_members{_OF_GROUP})"
                },
            ),
            Panel(
                "Rebalances in 15 minutes",
                {
                    "{{consumergroup}}": "max by (consumergroup) "
                    f"(changes(barnabas_group_epoch{_OF_GROUP}[15m]))"
                },
            ),
        ],
        [
            Panel(
                "Groups", {"{{protocol}} {{state}}": "sum by (protocol, state) (barnabas_groups)"}
            ),
            Panel(
                "Share groups, records in flight",
                {
                    "{{consumergroup}}": "sum by (consumergroup) "
                    f"(barnabas_share_records_in_flight{_OF_GROUP})"
                },
            ),
        ],
    ],
    {"group": "label_values(kafka_consumergroup_members, consumergroup)"},
)
REGISTRY: Final = Dashboard(
    "registry",
    "Barnabas: schema registry",
    [
        [
            _number("Leaders", "sum(kafka_schema_registry_master_slave_role)"),
            _number("Schemas", "max(kafka_schema_registry_schemas)"),
        ],
        [
            Panel("Answers", {"{{code}}": _rate("http_server_requests_total", "code")}, "reqps"),
            Panel("Connections", {"{{instance}}": "http_server_connections"}),
            Panel("Memory", {"{{instance}}": "process_resident_memory_bytes"}, "bytes"),
        ],
    ],
)
SQL: Final = Dashboard(
    "sql",
    "Barnabas: SQL",
    [
        [
            _number("Persistent queries", "max(ksql_num_persistent_queries)"),
            _number("Push queries", "sum(ksql_push_queries)"),
            _number("Command log followed", "min(ksql_command_runner_healthy)"),
        ],
        [
            Panel("Queries by state", {"{{state}}": "sum by (state) (ksql_queries)"}),
            Panel("Lag", {"{{query_id}}": "sum by (query_id) (ksql_query_consumer_lag)"}),
            Panel(
                "Micro-batches",
                {
                    "{{query_id}} {{phase}}": "max by (query_id, phase) "
                    "(ksql_query_batch_duration_seconds)"
                },
                "s",
            ),
        ],
        [
            Panel(
                "Pull queries",
                {
                    "a second": _rate_of_all("ksql_pull_query_latency_seconds_count"),
                    "failed": _rate_of_all("ksql_pull_query_errors_total"),
                },
            ),
            Panel("Restarts", {"{{query_id}}": "sum by (query_id) (ksql_query_restarts_total)"}),
        ],
    ],
)
_OF_QUERY: Final = "(pipeline, query)"
STREAMS: Final = Dashboard(
    "streams",
    "Barnabas: streams",
    [
        [
            _number("Pipelines that run", "sum(barnabas_pipeline_up)"),
            _number(
                "Queries that have failed", 'sum(barnabas_pipeline_query_status{status="failed"})'
            ),
            Panel(
                "Restarts",
                {
                    "{{pipeline}}/{{query}}": f"sum by {_OF_QUERY} "
                    "(barnabas_pipeline_query_restarts_total)"
                },
            ),
        ],
        [
            Panel(
                "Records read a second",
                {
                    "{{pipeline}}/{{query}}": f"sum by {_OF_QUERY} "
                    "(deriv(barnabas_pipeline_query_position[5m]))"
                },
                "wps",
            ),
            Panel(
                "Lag of pipelines",
                {
                    "{{pipeline}}/{{query}}": f"sum by {_OF_QUERY} "
                    "(barnabas_pipeline_query_consumer_lag)"
                },
            ),
            Panel(
                "Micro-batches",
                {
                    "{{pipeline}}/{{query}} {{phase}}": "max by (pipeline, query, phase) "
                    "(barnabas_pipeline_query_batch_duration_seconds)"
                },
                "s",
            ),
        ],
        [
            Panel(
                "State",
                {
                    "{{pipeline}}/{{query}}": f"sum by {_OF_QUERY} "
                    "(barnabas_pipeline_query_state_bytes)"
                },
                "bytes",
            ),
            Panel(
                "Late records of the last micro-batch",
                {
                    "{{pipeline}}/{{query}}": f"sum by {_OF_QUERY} "
                    "(barnabas_pipeline_query_batch_late_rows)"
                },
            ),
            Panel(
                "Behind event time",
                {
                    "{{pipeline}}/{{query}}": "time() - "
                    f"max by {_OF_QUERY} (barnabas_pipeline_query_watermark_seconds)"
                },
                "s",
            ),
        ],
        [
            _traffic("Records read and written", "messagesin_total", "wps"),
            _traffic("Bytes read", "bytesout_total", "Bps"),
        ],
        [
            Panel(
                "Lag of groups that read them",
                {
                    "{{consumergroup}} {{topic}}": "sum by (consumergroup, topic) "
                    f"(kafka_consumergroup_lag_sum{_OF_TOPIC})"
                },
            ),
            Panel(
                "Held back by transactions",
                {"{{topic}}": f"{_SUM_BY_TOPIC}({_PARTITION}laststableoffsetlag{_OF_TOPIC})"},
            ),
            Panel(
                "Groups of Kafka Streams",
                {"{{state}}": 'sum by (state) (barnabas_groups{protocol="streams"})'},
            ),
        ],
    ],
    {"topic": "label_values(kafka_topic_partitions, topic)"},
)
CONNECT: Final = Dashboard(
    "connect",
    "Barnabas: Connect",
    [
        [
            _number("Connectors", "sum(kafka_connect_worker_connector_count)"),
            _number("Tasks", "sum(kafka_connect_worker_task_count)"),
            _number("Failed tasks", "sum(kafka_connect_worker_connector_failed_task_count)"),
        ],
        [
            Panel(
                "Running tasks",
                {
                    "{{connector}}": "sum by (connector) "
                    "(kafka_connect_worker_connector_running_task_count)"
                },
            ),
            Panel(
                "Failed starts",
                {
                    "connectors": "sum(kafka_connect_worker_connector_startup_failure_total)",
                    "tasks": "sum(kafka_connect_worker_task_startup_failure_total)",
                },
            ),
        ],
    ],
)
DASHBOARDS: Final = (CLUSTER, TOPICS, GROUPS, REGISTRY, SQL, STREAMS, CONNECT)
