"""What clients have pushed of themselves (KIP-714), as families of Prometheus.

`org.apache.kafka.producer.connection.creation.rate` becomes
`kafka_client_producer_connection_creation_rate`; other names get `kafka_client_` in front. Labels
are the client's id, its instance and its software, and the attributes of the data point.
"""

import re
from collections.abc import Callable
from typing import Final

from barnabas.base.ids import uuid_to_text
from barnabas.node.broker.client_telemetry import (
    ALL_SERIES_MAX,
    TEXT_MAX,
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
    """Adds what clients have pushed lately."""
    found = [
        (uuid_to_text(instance_id), instance, dict(instance.counters), instance.gauges)
        for instance_id, instance in telemetry.items(now_ms)
    ]

    def show(text: Exposition) -> None:
        names: set[str] = set()
        left = ALL_SERIES_MAX
        for instance_id, instance, counters, gauges in found:
            seen: set[tuple[str, str]] = set()
            for values, is_counter in ((counters, True), (gauges, False)):
                for series, value in values.items():
                    name = family_name(series[0], is_counter=is_counter)
                    if left <= 0 or (name not in names and len(names) >= FAMILIES_MAX):
                        continue
                    labels = labels_text(_labels(instance_id, instance, series))
                    if (name, labels) in seen:
                        continue  # two names or labels that Prometheus cannot tell apart
                    seen.add((name, labels))
                    names.add(name)
                    left -= 1
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
    labels = {
        _NOT_IN_NAMES.sub("_", key).strip("_")[:TEXT_MAX] or "_": value[:TEXT_MAX]
        for key, value in series[1]
        if not key[:1].isdigit()
    }
    facts = instance.facts
    return labels | {
        "client_id": facts.client_id[:TEXT_MAX],
        "client_instance_id": instance_id,
        "client_software_name": facts.software_name[:TEXT_MAX],
    }
