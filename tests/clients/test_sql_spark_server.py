"""`barnabas sql server` with its queries on Spark."""

from __future__ import annotations

import resource
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from support.node_process import wait_until
from support.process_tree import descendants
from support.sql_server_process import SPARK, SqlServer, running

STATEMENTS = """
CREATE STREAM charges (station STRING KEY, kwh INT)
  WITH (kafka_topic='charges-{0}', value_format='JSON', partitions=2);
CREATE TABLE energy WITH (kafka_topic='energy-{0}') AS
  SELECT station, SUM(kwh) AS total FROM charges GROUP BY station EMIT CHANGES;
"""


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_queries_run_on_spark_and_go_on_after_a_restart(
    kafka_bootstrap_servers: str, tmp_path: Path
) -> None:
    settings = (SPARK, f"ksql.streams.state.dir={tmp_path}")
    with running(kafka_bootstrap_servers, settings) as server:
        server.ksql(STATEMENTS.format(server.suffix))
        server.ksql("INSERT INTO charges VALUES ('a', 7); INSERT INTO charges VALUES ('b', 1);")
        server.wait_for_rows("SELECT * FROM energy;", [["a", 7], ["b", 1]])
        assert server.stop() == 0
        server.start()
        server.ksql("INSERT INTO charges VALUES ('a', 1);")
        server.wait_for_rows("SELECT * FROM energy;", [["a", 8], ["b", 1]])


def query(server: SqlServer) -> dict[str, Any]:
    found: dict[str, Any] = server.ksql("SHOW QUERIES EXTENDED;")[0]["queryDescriptions"][0]
    return found


def wait_for_state(server: SqlServer, state: str) -> dict[str, Any]:
    """Wait until the query is in a state; what is shown of it then."""
    found: dict[str, Any] = {}

    def is_there() -> bool:
        found.update(query(server))
        return bool(found["state"] == state)

    wait_until(is_there, f"state {state}", server.patience_s, lambda: str(found))
    return found


def limit_files(server: SqlServer, size_bytes: int) -> None:
    """Let no file of the server, its JVM and its workers grow beyond a size: a full disk."""
    assert server.process is not None
    for process in descendants(server.process.pid):
        with suppress(ProcessLookupError):  # a worker that has just ended
            hard = resource.prlimit(process, resource.RLIMIT_FSIZE)[1]
            resource.prlimit(process, resource.RLIMIT_FSIZE, (size_bytes, hard))


def machines(server: SqlServer) -> list[int]:
    """The JVMs that the server has started."""
    assert server.process is not None
    found = []
    for process in descendants(server.process.pid):
        with suppress(OSError):  # one that has just ended
            if Path(f"/proc/{process}/comm").read_text().strip() == "java":
                found.append(process)
    return found


def daemons(server: SqlServer) -> list[int]:
    """Those that fork the workers of Spark's tasks, each with its own."""
    (machine,) = machines(server)
    return [
        process
        for process in descendants(machine)
        if b"barnabas.spark.worker_daemon" in Path(f"/proc/{process}/cmdline").read_bytes()
        and Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1] == str(machine)
    ]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_spark_starts_with_the_server_once_and_ends_with_it(
    kafka_bootstrap_servers: str, tmp_path: Path
) -> None:
    settings = (SPARK, f"ksql.streams.state.dir={tmp_path}")
    with running(kafka_bootstrap_servers, settings) as server:
        wait_until(lambda: len(machines(server)) == 1, "Spark's JVM", server.patience_s)
        warming = machines(server)
        assert server.stop() == 0, "stopped while it warms"
        wait_until(lambda: not Path(f"/proc/{warming[0]}").exists(), "the end of Spark's JVM")
        server.start()
        # A statement that comes while Spark starts waits for it.
        server.ksql(STATEMENTS.format(server.suffix))
        server.ksql("INSERT INTO charges VALUES ('a', 7);")
        server.wait_for_rows("SELECT * FROM energy;", [["a", 7]])
        assert len(daemons(server)) == 1, "operators with and without state share workers"
    with running(
        kafka_bootstrap_servers, (*settings, "barnabas.sql.spark.start.cold=true")
    ) as cold:
        cold.ksql("SHOW STREAMS;")
        assert machines(cold) == []


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_a_query_is_explained_replaced_and_outlives_a_full_disk_and_a_damaged_checkpoint(
    kafka_bootstrap_servers: str, tmp_path: Path
) -> None:
    settings = (
        *(SPARK, f"ksql.streams.state.dir={tmp_path}"),
        *("ksql.query.retry.backoff.initial.ms=500", "ksql.query.retry.backoff.max.ms=1000"),
    )
    with running(kafka_bootstrap_servers, settings) as server:
        server.ksql(STATEMENTS.format(server.suffix))
        server.ksql("INSERT INTO charges VALUES ('a', 7); INSERT INTO charges VALUES ('b', 1);")
        server.wait_for_rows("SELECT * FROM energy;", [["a", 7], ["b", 1]])
        assert "TransformWithStateInPandas" in query(server)["topology"]
        assert "ksql_query_state_bytes{" in server.client.get("/metrics").text

        (answer,) = server.ksql(
            f"CREATE OR REPLACE TABLE energy WITH (kafka_topic='energy-{server.suffix}') AS SELECT "
            "station, SUM(kwh) AS total FROM charges WHERE kwh > 1 GROUP BY station EMIT CHANGES;"
        )
        assert "goes on from its state and offsets" in answer["warnings"][0]["message"]
        server.ksql("INSERT INTO charges VALUES ('a', 1); INSERT INTO charges VALUES ('b', 2);")
        server.wait_for_rows("SELECT * FROM energy;", [["a", 7], ["b", 3]])

        limit_files(server, 0)
        server.ksql("INSERT INTO charges VALUES ('a', 10);")
        failed = wait_for_state(server, "ERROR")
        assert failed["queryErrors"][-1]["type"] == "SYSTEM", failed["queryErrors"]
        limit_files(server, resource.RLIM_INFINITY)
        # Until then pull queries are answered with an error.
        wait_for_state(server, "RUNNING")
        server.wait_for_rows("SELECT * FROM energy;", [["a", 17], ["b", 3]])

        assert server.stop() == 0
        (plan,) = tmp_path.rglob("plan.json")
        good = plan.read_text()
        plan.write_text(good[:100])
        server.start()
        failed = wait_for_state(server, "ERROR")
        assert "plan.json" in failed["queryErrors"][-1]["errorMessage"]
        plan.write_text(good)
        wait_for_state(server, "RUNNING")
        server.ksql("INSERT INTO charges VALUES ('a', 3);")
        server.wait_for_rows("SELECT * FROM energy;", [["a", 20], ["b", 3]])
