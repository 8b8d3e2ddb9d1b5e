"""`/metrics` and `/health` of a pipeline."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from barnabas.streams.errors import PipelineError
from barnabas.streams.metrics import (
    PipelineMetrics,
    figures,
    listen_address,
    not_ready,
)
from barnabas.streams.running_query import Progress, QueryFigures, QueryProgress
from barnabas.web.listening import ListenAddress
from barnabas.web.metrics import metrics_text
from support.patience import PATIENCE_S

TOLD = {
    "sources": [
        {
            "endOffset": '{"charging": {"0": 7, "1": 10}}',
            "latestOffset": '{"charging": {"0": 9, "1": 10}}',
        }
    ],
    "durationMs": {"triggerExecution": 250, "addBatch": 125},
}
ENERGY = QueryProgress(
    topic="energy",
    state="running",
    batches=3,
    rows=12,
    rows_per_second=48.0,
    lag=2,
    watermark="2026-01-01T00:00:01.500Z",
    state_rows=5,
    state_bytes=4096,
    dropped_late=1,
    batch_ms=250,
    restarts=2,
)


def samples(progress: Progress, *queries: QueryFigures) -> dict[str, float]:
    text = metrics_text(figures(progress, list(queries)).all()).decode()
    return {
        " ".join([one.name, *(f"{k}={one.labels[k]}" for k in sorted(one.labels))]): one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
    }


def test_a_query_shows_what_spark_says_of_it() -> None:
    found = samples(Progress("shop", True, {"energy": ENERGY}), QueryFigures(ENERGY, TOLD))
    assert found.pop("barnabas_pipeline_up pipeline=shop") == 1
    prefix, labels = "barnabas_pipeline_query_", "pipeline=shop query=energy"
    statuses = {
        name: found.pop(f"{prefix}status {labels} status={name}")
        for name in ("waiting to start", "running", "failed", "ended")
    }
    assert [name for name, value in statuses.items() if value] == ["running"]
    of = "pipeline=shop query=energy topic=charging"
    at = "partition={} " + of
    assert {name.removeprefix(prefix): value for name, value in found.items()} == {
        f"batches_total {labels}": 3,
        f"restarts_total {labels}": 2,
        f"batch_rows {labels}": 12,
        f"rows_per_second {labels}": 48,
        f"batch_late_rows {labels}": 1,
        f"state_rows {labels}": 5,
        f"state_bytes {labels}": 4096,
        f"watermark_seconds {labels}": 1_767_225_601.5,
        f"consumer_lag {at.format(0)}": 2,
        f"consumer_lag {at.format(1)}": 0,
        f"position {at.format(0)}": 7,
        f"position {at.format(1)}": 10,
        f"end_offset {at.format(0)}": 9,
        f"end_offset {at.format(1)}": 10,
        f"batch_duration_seconds phase=triggerExecution {labels}": 0.25,
        f"batch_duration_seconds phase=addBatch {labels}": 0.125,
    }


@pytest.mark.parametrize("watermark", [None, "1970-01-01T00:00:00.000Z"])
def test_a_query_that_has_read_nothing_has_no_watermark_and_no_lag(watermark: str | None) -> None:
    query = QueryProgress("energy", "waiting to start", watermark=watermark)
    found = samples(Progress("shop", True, {"energy": query}), QueryFigures(query))
    assert not [name for name in found if "watermark" in name or "lag" in name or "phase" in name]
    assert found["barnabas_pipeline_query_status pipeline=shop query=energy status=failed"] == 0


def test_a_failed_query_is_named_without_its_error() -> None:
    failed = QueryProgress("energy", "failed", error="password=secret")
    reason = not_ready(Progress("shop", True, {"energy": failed, "other": ENERGY}))
    assert reason == "the query of energy has failed"
    assert not_ready(Progress("shop", True, {"energy": ENERGY})) is None
    assert not_ready(Progress("shop", False, {})) == "the pipeline has ended"


class Pipeline:
    """The progress of a running pipeline."""

    def __init__(self) -> None:
        self.query = ENERGY

    def __call__(self) -> tuple[Progress, list[QueryFigures]]:
        progress = Progress("shop", True, {"energy": self.query})
        return progress, [QueryFigures(self.query, TOLD)]


@pytest.fixture
def pipeline() -> Pipeline:
    return Pipeline()


@pytest.fixture
def http(pipeline: Pipeline) -> Iterator[httpx.Client]:
    shown = PipelineMetrics(listen_address("http://127.0.0.1:0"), pipeline)
    try:
        base = shown.url.removesuffix("/metrics")
        with httpx.Client(base_url=base, timeout=PATIENCE_S) as client:
            yield client
    finally:
        shown.close()


def test_figures_and_health_are_served(http: httpx.Client, pipeline: Pipeline) -> None:
    text = http.get("/metrics").text
    assert 'barnabas_pipeline_query_batches_total{pipeline="shop",query="energy"} 3.0' in text
    assert "process_resident_memory_bytes" in text
    assert http.get("/health/live").json() == {"status": "live"}
    assert http.get("/health/ready").json() == {"status": "ready"}
    pipeline.query = QueryProgress("energy", "failed", error="password=secret")
    answer = http.get("/health/ready")
    assert (answer.status_code, "energy has failed" in answer.text) == (503, True)
    assert "secret" not in http.get("/metrics").text + answer.text
    assert http.get("/").status_code == 404
    assert http.post("/metrics").status_code == 405
    assert http.get("/metrics", headers={"host": "evil.example"}).status_code == 403


def test_an_address_that_is_taken_is_an_error_of_the_pipeline(http: httpx.Client) -> None:
    taken = listen_address(str(http.base_url))
    with pytest.raises(PipelineError, match="metrics_listener: cannot listen at"):
        PipelineMetrics(taken, Pipeline())


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("http://127.0.0.1:9405", ListenAddress("127.0.0.1", 9405)),
        ("http://[::1]:0/", ListenAddress("::1", 0)),
    ],
)
def test_an_address_to_listen_at(text: str, address: ListenAddress) -> None:
    assert listen_address(text) == address


@pytest.mark.parametrize(
    "text",
    [
        "127.0.0.1:9405",
        "https://127.0.0.1:9405",
        "http://127.0.0.1",
        "http://:9405",
        "http://127.0.0.1:port",
        "http://127.0.0.1:9405/metrics",
        "http://name:password@127.0.0.1:9405",
    ],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(PipelineError, match="is not http://HOST:PORT"):
        listen_address(text)
