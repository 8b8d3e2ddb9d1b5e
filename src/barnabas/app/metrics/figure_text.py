"""Figures as Prometheus' text.

Names are those under which the JMX exporter shows Kafka's: `kafka.server:type=Produce`, attribute
`byte-rate`, becomes `kafka_server_produce_byte_rate`.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from barnabas.node.security.quotas.client_quotas import Figure

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def figure_text(figures: Iterable[Figure]) -> bytes:
    """The text that a scrape gets."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Figures(figures))
    return generate_latest(registry)


class _Figures(Collector):
    def __init__(self, figures: Iterable[Figure]) -> None:
        self._figures = figures

    def collect(self) -> Iterator[Metric]:
        families: dict[str, GaugeMetricFamily] = {}
        for (kind, name, tags), value in _summed(self._figures).items():
            family = families.get(_name(kind, name))
            if family is None:
                family = GaugeMetricFamily(_name(kind, name), f"{kind}: {name}")
                families[family.name] = family
            family.add_sample(family.name, {_snake(key): text for key, text in tags}, value)
        yield from families.values()

    def describe(self) -> Iterator[Metric]:
        return iter(())


_Series = tuple[str, str, tuple[tuple[str, str], ...]]


def _summed(figures: Iterable[Figure]) -> dict[_Series, float]:
    """Each series once: both roles of a node may measure the same client at their listeners."""
    values: dict[_Series, float] = {}
    for figure in figures:
        series = figure.kind, figure.name, tuple(sorted(figure.tags.items()))
        values[series] = values.get(series, 0.0) + figure.value
    return values


def _name(kind: str, name: str) -> str:
    return f"kafka_server_{_snake(kind)}_{_snake(name)}"


def _snake(text: str) -> str:
    return _NOT_IN_NAMES.sub("_", _HUMP.sub("_", text).lower()).strip("_")
