"""Metrics as OpenTelemetry's protocol writes them, and bytes that are none."""

from __future__ import annotations

from random import Random

import pytest

from barnabas.protocol import otlp
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.otlp import Point, read_metrics
from support.otlp import attribute, double, gauge, integer, metrics_data, total

DATA = metrics_data(
    gauge("a.b", double(1.5) + attribute("node.id", "1"), integer(-7)),
    total("c.total", integer(40), 2, is_monotonic=True),
    total("d", double(0.25), 1, is_monotonic=True),
    total("e", double(2), 2, is_monotonic=False),
)


def test_points_of_gauges_and_sums() -> None:
    assert read_metrics(DATA) == [
        Point("a.b", False, False, 1.5, (("node.id", "1"),)),
        Point("a.b", False, False, -7, ()),
        Point("c.total", True, False, 40, ()),
        Point("d", True, True, 0.25, ()),
        Point("e", False, False, 2.0, ()),
    ]
    assert read_metrics(b"") == []


def test_bytes_that_end_too_early_are_refused_or_hold_less() -> None:
    for end in range(len(DATA)):
        with pytest.raises(DecodeError):
            read_metrics(DATA[:end] or b"\x0a")


def test_any_bytes_are_points_or_refused() -> None:
    random = Random(7)
    for _ in range(2000):
        data = bytearray(DATA)
        for _ in range(random.randint(1, 8)):
            data[random.randrange(len(data))] = random.randrange(256)
        try:
            read_metrics(bytes(data))
        except DecodeError:
            continue


def test_points_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp, "POINTS_MAX", 3)
    with pytest.raises(DecodeError, match="more than 3"):
        read_metrics(metrics_data(*[gauge("a", double(1))] * 4))


def test_fields_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp, "FIELDS_MAX", 100)
    with pytest.raises(DecodeError, match="more than 100 fields"):
        read_metrics(metrics_data(gauge("a", b"\x00\x00" * 101)))
