"""The metrics that clients pushed (KIP-714), as families of Prometheus.

`org.apache.kafka.producer.connection.creation.rate` becomes
`kafka_client_producer_connection_creation_rate`; other names get the prefix `kafka_client_`. Labels
are the client's id, its instance and its software, and the attributes of the data point.
"""

import re
from collections.abc import Callable
from typing import Final

from barnabas.base.ids import uuid_to_text
from barnabas.node.broker.client_telemetry import (
    ClientTelemetry,
    Instance,
    Series,
)
from barnabas.web.metrics import Exposition, Family, labels_text

PREFIX: Final = "kafka_client_"
KAFKAS: Final = "org.apache.kafka."
FAMILIES_MAX: Final = 2000
CLIENT_LABELS: Final = ("client_id", "client_instance_id", "client_software_name")
_NOT_IN_NAMES: Final = re.compile(r"[^a-zA-Z0-9_]+")


def pushed_metrics(telemetry: ClientTelemetry, now_ms: int) -> Callable[[Exposition], None]:
    """Add what clients pushed lately."""
    found = [
        (uuid_to_text(instance_id), instance, instance.counters, instance.gauges)
        for instance_id, instance in telemetry.items(now_ms)
    ]

    instances, dropped = len(telemetry), telemetry.dropped_series

    def show(text: Exposition) -> None:
        text.add("barnabas_client_telemetry_instances", instances)
        text.add("barnabas_client_telemetry_dropped_series_total", dropped)
        names: set[str] = set()
        for instance_id, instance, counters, gauges in found:
            seen: set[tuple[str, str]] = set()
            for values, is_counter in ((counters, True), (gauges, False)):
                for series, value in values.items():
                    name = family_name(series[0], is_counter=is_counter)
                    if name not in names and len(names) >= FAMILIES_MAX:
                        continue
                    labels = labels_text(_labels(instance_id, instance, series))
                    if (name, labels) in seen:
                        continue  # two names or labels that Prometheus cannot tell apart
                    seen.add((name, labels))
                    names.add(name)
                    kind, what = "counter" if is_counter else "gauge", f"Pushed: {series[0]}."
                    text.declare(Family(name, kind, CLIENT_LABELS, what))  # type: ignore[arg-type]  # one of two literals
                    text.column(name, (labels,), (value,))

    return show


def family_name(name: str, *, is_counter: bool) -> str:
    """The name of Prometheus for a metric of a client."""
    plain = _NOT_IN_NAMES.sub("_", name.removeprefix(KAFKAS)).strip("_").lower()
    plain = plain.removesuffix("_total")
    return f"{PREFIX}{plain}_total" if is_counter else PREFIX + plain


def _labels(instance_id: str, instance: Instance, series: Series) -> dict[str, str]:
    labels: dict[str, str] = {}
    for key, value in series[1]:
        name = _NOT_IN_NAMES.sub("_", key).strip("_")
        if name and not name[0].isdigit():
            labels[name] = value
    facts = instance.facts
    return labels | {
        "client_id": facts.client_id,
        "client_instance_id": instance_id,
        "client_software_name": facts.software_name,
    }
