"""Figures as Prometheus' text, through `prometheus_client`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


class Families:
    """Families of figures by name, in the order in which they were first needed.

    Names of counters are without `_total`, which the text adds.
    """

    def __init__(self) -> None:
        self._found: dict[str, CounterMetricFamily | GaugeMetricFamily] = {}

    def gauge(self, name: str, what: str, value: float, /, **labels: str) -> None:
        """Add a figure that goes up and down."""
        family = self._found.get(name)
        if family is None:
            family = self._found[name] = GaugeMetricFamily(name, what)
        family.add_sample(name, labels, value)

    def counter(self, name: str, what: str, value: float, /, **labels: str) -> None:
        """Add a figure that only grows."""
        family = self._found.get(name)
        if family is None:
            family = self._found[name] = CounterMetricFamily(name, what)
        family.add_sample(f"{name}_total", labels, value)

    def all(self) -> Iterable[Metric]:
        """All of them."""
        return self._found.values()


class _Found(Collector):
    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        return self._metrics

    def describe(self) -> Iterable[Metric]:
        return ()


def metrics_text(metrics: Iterable[Metric]) -> bytes:
    """The text that a scrape gets of these families."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Found(metrics))
    return generate_latest(registry)


def process_text() -> bytes:
    """Memory, processor time and descriptors of this process; nothing without /proc."""
    registry = CollectorRegistry(auto_describe=False)
    ProcessCollector(registry=registry)
    return generate_latest(registry)
