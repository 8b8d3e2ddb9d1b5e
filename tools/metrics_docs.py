"""Writes docs/metrics.md from the catalog of a node's metrics: `python tools/metrics_docs.py`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from barnabas.app.metrics.catalog import GROUPS
from barnabas.web.metrics import Family

DOCS: Final = Path(__file__).parents[1] / "docs"
HEAD: Final = """# Metrics

Every service answers `GET /metrics` in Prometheus' text format. A node does so at the listener that
its properties set:

```properties
barnabas.metrics.listener=http://127.0.0.1:9404
```

`barnabas dev` turns metrics on at any free port of this machine and prints the URL; choose another
address with `--override barnabas.metrics.listener=http://127.0.0.1:9404`. For access from other
machines use `https://`, with the node's own `ssl.keystore.…` keys or those of
`listener.name.metrics.`, and `barnabas.metrics.users=prometheus:password` for HTTP's basic
authentication. The registry, the SQL server, Connect workers and the console answer at their own
listeners, pipelines in Python at one that an option names: [operations.md](operations.md) lists
them.

## Prometheus

```yaml
scrape_configs:
  - job_name: kafka
    static_configs:
      - targets: ["node1:9404", "node2:9404", "node3:9404"]
```

Metrics have the names that the JMX exporter gives Kafka's metrics, with its example configuration
and `lowercaseOutputName: true`, and those of the usual exporter of consumer lag. Existing
dashboards and alerts work unchanged; metrics that are missing have no counterpart in this broker.

- A counter of `kafka_server_brokertopicmetrics_` without `topic` is the sum of all topics, as in
  Kafka. To add up topics yourself, select `topic!=""`.
- Every request is counted. About 200 a second of each API are timed; percentiles cover the last 30
  to 60 seconds. `request="Fetch"` combines `FetchConsumer` and `FetchFollower`.
- Metrics of a partition come from the node that leads it, except `kafka_log_log_…`, which every
  replica has. Those of the cluster come from the controllers; `activecontrollercount` shows which
  of them is active.
- A node collects a scrape in small steps, between its other work.

## Dashboards and alerts

```sh
barnabas metrics dashboards --to ./dashboards
barnabas metrics alerts --to ./alerts.yml
```

The first command writes Grafana dashboards: the cluster, topics, consumer groups, and one each for
the registry, SQL, streams and Connect. Import them, or give their directory to Grafana's
provisioning.
The second writes alert rules; name the file in `prometheus.yml`:

```yaml
rule_files: ["alerts.yml"]
```

Each alert has a `runbook_url`, a path in this documentation: the [runbooks](runbooks/README.md)
explain what it means, what to look at and what to do.

## Metrics of clients

A node that exposes metrics also accepts the metrics that clients push (KIP-714), unless
`barnabas.metrics.clients=false`, which `barnabas dev` sets. Java clients from 3.7 on and
librdkafka from 2.5 on can push them without a plugin. (librdkafka then logs `GETSUBSCRIPTIONS`
for each client, on standard error by default; `enable.metrics.push=false` in the client's settings
avoids it.) Configure what they should push:

```sh
kafka-client-metrics.sh --bootstrap-server localhost:9092 --alter --name all \\
  --metrics '*' --interval 30000
```

`org.apache.kafka.producer.connection.creation.rate` becomes
`kafka_client_producer_connection_creation_rate`, with the labels `client_id`, `client_instance_id`,
`client_software_name` and the attributes that the client gives. Each node shows the metrics that
were pushed to it, and forgets a client that has been silent for three intervals. Limits protect a
node: 2,000 clients, 500 series of one client and 50,000 of all, eight attributes per
series, 128 characters per text, and pushes of up to `telemetry.max.bytes`.
`barnabas_client_telemetry_dropped_series_total` counts what was dropped.

## Figures of a node
"""


def main() -> None:
    """Write the file."""
    (DOCS / "metrics.md").write_text(document(), encoding="utf-8")


def document() -> str:
    """The whole document."""
    return "\n".join([HEAD, *(_section(title, families) for title, families in GROUPS.items())])


def _section(title: str, families: Iterable[Family]) -> str:
    rows = [
        f"| `{family.name}` | {family.kind} | {_labels(family)} | {family.what} |"
        for family in families
    ]
    head = ["| Metric | Type | Labels | Meaning |", "|---|---|---|---|"]
    return "\n".join([f"### {title}", "", *head, *rows, ""])


def _labels(family: Family) -> str:
    return ", ".join(f"`{label}`" for label in family.labels)


if __name__ == "__main__":
    main()
