"""GET /metrics: the metrics of the server and its queries."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

from barnabas.sql.engine.queries import BATCH_MS
from barnabas.sql.engine.running import Rates
from support.sql_server_world import SqlWorld

STORY = (
    "CREATE STREAM s (k STRING KEY, v INT) WITH (kafka_topic='s', value_format='JSON', "
    "partitions=1);"
    "CREATE TABLE t AS SELECT k, SUM(v) AS total FROM s GROUP BY k;"
)


@pytest.fixture
async def world() -> AsyncIterator[SqlWorld]:
    found = SqlWorld()
    yield found
    await found.close()


async def scraped(world: SqlWorld) -> dict[str, float]:
    """Samples by name and the values of their labels, those in the order of the labels' names."""
    answer = await world.client.get("/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    found = {}
    for family in text_string_to_metric_families(answer.text):
        for sample in family.samples:
            values = ",".join(value for _, value in sorted(sample.labels.items()))
            found[f"{sample.name}{{{values}}}"] = sample.value
    return found


async def test_figures_of_a_query(world: SqlWorld) -> None:
    await world.ksql(STORY)
    world.write("s", "a", {"V": 1}, 5_000)
    world.write("s", "b", {"V": 2}, 4_000)
    world.write("s", "b", "no number", 4_000)
    found = await scraped(world)
    expected = {
        "ksql_liveness_indicator{}": 1,
        "ksql_command_runner_healthy{}": 1,
        "ksql_num_persistent_queries{}": 1,
        "ksql_queries{RUNNING}": 1,
        "ksql_queries{ERROR}": 0,
        "ksql_query_status{CTAS_T_1,RUNNING}": 1,
        "ksql_query_status{CTAS_T_1,PAUSED}": 0,
        "ksql_query_restarts_total{CTAS_T_1}": 0,
        "ksql_query_consumed_messages_total{CTAS_T_1}": 3,
        "ksql_query_produced_messages_total{CTAS_T_1}": 2,
        "ksql_query_processing_errors_total{CTAS_T_1}": 1,
        "ksql_query_consumed_messages_per_second{CTAS_T_1}": 0,
        "ksql_query_stream_time_seconds{CTAS_T_1}": 5,
        "ksql_query_consumer_lag{0,CTAS_T_1,s}": 0,
        "ksql_query_position{0,CTAS_T_1,s}": 3,
        "ksql_query_end_offset{0,CTAS_T_1,s}": 3,
    }
    assert {name: found.get(name) for name in expected} == expected
    assert found["ksql_query_state_rows{CTAS_T_1}"] >= 2


async def test_a_failed_query_shows_why(world: SqlWorld) -> None:
    await world.ksql(STORY)
    (running,) = world.engine.queries.values()
    assert running.hosted is not None
    running.hosted._fail(OSError("No space left on device"))  # type: ignore[attr-defined]
    found = await scraped(world)
    assert found["ksql_query_status{CTAS_T_1,ERROR}"] == 1
    assert found["ksql_query_error_status{CTAS_T_1,SYSTEM}"] == 1
    assert found["ksql_queries{ERROR}"] == 1


async def test_queries_of_clients_are_counted(world: SqlWorld) -> None:
    await world.ksql(STORY)
    await world.rows("SELECT * FROM t;")
    await world.rows("SELECT * FROM s EMIT CHANGES LIMIT 0;")
    await world.error("SELECT missing FROM t;", "/query")
    await world.error("SELECT missing FROM t EMIT CHANGES;", "/query")
    found = await scraped(world)
    assert found["ksql_pull_query_latency_seconds_count{}"] == 2
    assert found["ksql_pull_query_errors_total{}"] == 1
    assert found["ksql_push_query_requests_total{}"] == 2
    assert found["ksql_push_query_errors_total{}"] == 1
    assert found["ksql_push_queries{}"] == 0


async def test_spark_s_figures_have_names_of_their_own(
    world: SqlWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.ksql(STORY)
    (running,) = world.engine.queries.values()
    figures = {"batches": 3, "state_bytes": 1024, f"{BATCH_MS}addBatch": 250}
    monkeypatch.setattr(type(running.hosted), "figures", figures)
    found = await scraped(world)
    assert found["ksql_query_batches_total{CTAS_T_1}"] == 3
    assert found["ksql_query_state_bytes{CTAS_T_1}"] == 1024
    assert found["ksql_query_batch_duration_seconds{addBatch,CTAS_T_1}"] == 0.25


LOOKS: list[tuple[list[tuple[int, int]], float]] = [
    ([], 0),
    ([(0, 5)], 0),
    ([(0, 0), (10_000, 50)], 5),
    ([(0, 0), (10, 50)], 50),
    ([(0, 0), (10_000, 50), (30_000, 50), (50_000, 50)], 0),
    ([(0, 50), (10_000, 0)], 0),
]


@pytest.mark.parametrize(("looks", "rate"), LOOKS)
def test_rates_are_of_the_last_half_minute(looks: list[tuple[int, int]], rate: float) -> None:
    rates = Rates()
    for now_ms, count in looks:
        rates.look({"rows_in": count}, now_ms)
    assert rates.per_second("rows_in") == rate


async def test_a_query_is_told_of_by_who_runs_it(world: SqlWorld) -> None:
    await world.ksql(STORY)
    world.engine.own(())
    found = await scraped(world)
    assert found["ksql_num_persistent_queries{}"] == 1
    assert found["ksql_queries{RUNNING}"] == 0
    assert not any("CTAS_T_1" in name for name in found)
