"""Details of sources, queries and properties that clients of ksqlDB show."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from barnabas.sql.engine.cluster import ClusterError
from barnabas.sql.server.details import Stat, formatted
from support.sql_server_world import SqlWorld

STORY = (
    "CREATE STREAM s (k STRING KEY, v INT) WITH (kafka_topic='s', value_format='JSON', "
    "partitions=1);"
    "CREATE STREAM c AS SELECT k, v * 2 AS w FROM s;"
    "CREATE TABLE t AS SELECT k, SUM(w) AS total FROM c GROUP BY k;"
)
HOST = "localhost:8088"


@pytest.fixture
async def world() -> AsyncIterator[SqlWorld]:
    found = SqlWorld()
    await found.ksql(STORY)
    yield found
    await found.close()


async def described(world: SqlWorld, name: str) -> dict[str, Any]:
    answer = (await world.ksql(f"DESCRIBE {name} EXTENDED;"))[0]
    found: dict[str, Any] = answer["sourceDescription"]
    return found


async def test_a_source_has_statistics_of_its_queries(world: SqlWorld) -> None:
    world.write("s", "a", {"V": 1})
    world.write("s", "a", "no number")
    found = await described(world, "c")
    figures = {stat["name"]: stat["value"] for stat in found["clusterStatistics"]}
    assert figures["total-messages"] == 1
    assert figures["consumer-total-messages"] == 1
    assert {stat["host"] for stat in found["clusterStatistics"]} == {HOST}
    assert "total-messages:         1" in found["statistics"]
    assert "last-message: 20" in found["statistics"]
    assert (found["errorStats"], found["clusterErrorStats"]) == ("", [])
    source = await described(world, "s")
    rate, count = source["clusterErrorStats"]
    assert (count["name"], count["value"]) == ("consumer-failed-messages", 1)
    assert rate["name"] == "consumer-failed-messages-per-sec"
    assert rate["value"] > 0
    assert "consumer-failed-messages:         1" in source["errorStats"]


async def test_a_source_shows_how_far_its_queries_have_read(
    world: SqlWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.write("s", "a", {"V": 1})
    offsets = {"partition": 0, "logStartOffset": 0, "logEndOffset": 1, "consumerOffset": 1}
    want = [
        {
            "groupId": "_confluent-ksql-default_query_CSAS_C_1",
            "topicSummaries": [{"kafkaTopic": "s", "offsets": [offsets]}],
        }
    ]
    assert (await described(world, "c"))["queryOffsetSummaries"] == want

    def silent(places: object) -> None:
        raise ClusterError("Local: Timed out")

    monkeypatch.setattr(world.cluster, "bounds", silent)
    assert (await described(world, "c"))["queryOffsetSummaries"] == want


async def test_a_source_names_those_made_from_it(world: SqlWorld) -> None:
    assert (await described(world, "c"))["sourceConstraints"] == ["T"]
    assert (await described(world, "t"))["sourceConstraints"] == []


async def test_queries_show_their_states_by_server(world: SqlWorld) -> None:
    listed = (await world.ksql("SHOW QUERIES;"))[0]["queries"]
    assert [query["statusCount"] for query in listed] == [{"RUNNING": 1}] * 2
    extended = (await world.ksql("SHOW QUERIES EXTENDED;"))[0]["queryDescriptions"]
    assert [query["ksqlHostQueryStatus"] for query in extended] == [{HOST: "RUNNING"}] * 2
    assert extended[0]["consumerGroupId"] == "_confluent-ksql-default_query_CSAS_C_1"


PROPERTIES: list[tuple[str, bool, str]] = [
    ("ksql.streams.auto.offset.reset", True, "SERVER"),
    ("ksql.query.pull.table.scan.enabled", True, "QUERY"),
    ("ksql.query.retry.backoff.max.ms", True, "QUERY"),
    ("ksql.query.retry.backoff.initial.ms", False, "SERVER"),
    ("ksql.streams.processing.guarantee", True, "SERVER"),
    ("ksql.service.id", False, "SERVER"),
    ("ksql.logging.processing.rows.include", False, "SERVER"),
]


@pytest.mark.parametrize(("name", "editable", "level"), PROPERTIES)
async def test_properties_have_ksqldb_s_levels(
    world: SqlWorld, name: str, editable: bool, level: str
) -> None:
    listed = (await world.ksql("SHOW PROPERTIES;"))[0]["properties"]
    (found,) = (one for one in listed if one["name"] == name)
    assert (found["editable"], found["level"]) == (editable, level)


def test_figures_in_a_line() -> None:
    stats = [Stat("messages-per-sec", 1.25, 1_000), Stat("total-messages", 10, 1_000)]
    assert formatted(stats, "last-message") == (
        "messages-per-sec:      1.25   total-messages:        10     last-message: "
        "1970-01-01T00:00:01.000Z"
    )
    assert formatted([Stat("total-messages", 0)], "last-message").endswith("      n/a")
    assert formatted([], "last-message") == ""
