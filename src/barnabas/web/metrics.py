"""Metrics as Prometheus' text: by `prometheus_client`, or by `Exposition` if there are many."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

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


# Many samples: a line each, without an object for any of them.


PART_LINES: Final = 1000
"""Of the text, made at once."""


@dataclass(frozen=True, slots=True)
class Family:
    """A family of figures, as documented."""

    name: str
    kind: Literal["counter", "gauge", "summary"]
    labels: tuple[str, ...]
    what: str


class Exposition:
    """Samples of known families, in the order of the families."""

    def __init__(self, families: Mapping[str, Family]) -> None:
        self._families = dict(families)
        self._columns: dict[str, list[tuple[Sequence[str], Sequence[float]]]] = {}

    def declare(self, family: Family) -> None:
        """Add a family after the others; one that is already known stays as it is."""
        self._families.setdefault(family.name, family)

    def add(self, name: str, value: float, suffix: str = "", /, **labels: str) -> None:
        """Add a sample. `suffix` is for the counts and sums of a summary."""
        self.column(name, (suffix + labels_text(labels),), (value,))

    def column(self, name: str, labels: Sequence[str], values: Sequence[float]) -> None:
        """Add samples whose labels are texts already. Raises KeyError for an unknown family."""
        columns = self._columns.get(name)
        if columns is None:
            assert name in self._families, f"{name} is not documented"
            columns = self._columns[name] = []
        columns.append((labels, values))

    def parts(self) -> Iterator[bytes]:
        """The text, in parts of at most some PART_LINES lines."""
        lines: list[str] = []
        for name, family in self._families.items():
            columns = self._columns.get(name)
            if columns is None:
                continue
            lines.append(f"# HELP {name} {_help_text(family.what)}\n# TYPE {name} {family.kind}\n")
            for labels, values in columns:
                for start in range(0, len(values), PART_LINES):
                    end = start + PART_LINES
                    lines += [
                        f"{name}{text} {value}\n"
                        for text, value in zip(labels[start:end], values[start:end], strict=True)
                    ]
                    if len(lines) >= PART_LINES:
                        yield "".join(lines).encode()
                        lines.clear()
        yield "".join(lines).encode()


def labels_text(labels: Mapping[str, str]) -> str:
    """Labels as a sample has them, in alphabetical order; empty without any."""
    if not labels:
        return ""
    return "{" + ",".join(f'{key}="{_escaped(labels[key])}"' for key in sorted(labels)) + "}"


def _escaped(value: str) -> str:
    if "\\" in value or '"' in value or "\n" in value:
        return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
    return value


def _help_text(what: str) -> str:
    return what.replace("\\", r"\\").replace("\n", r"\n")
