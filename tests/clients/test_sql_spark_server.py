"""`barnabas sql server` with its queries on Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.sql_server_process import running

STATEMENTS = """
CREATE STREAM charges (station STRING KEY, kwh INT)
  WITH (kafka_topic='charges-{0}', value_format='JSON', partitions=2);
CREATE TABLE energy WITH (kafka_topic='energy-{0}') AS
  SELECT station, SUM(kwh) AS total FROM charges GROUP BY station EMIT CHANGES;
"""


@pytest.mark.slow
def test_queries_run_on_spark_and_go_on_after_a_restart(
    kafka_bootstrap_servers: str, tmp_path: Path
) -> None:
    settings = ("barnabas.sql.runner=spark", f"ksql.streams.state.dir={tmp_path}")
    with running(kafka_bootstrap_servers, settings) as server:
        server.ksql(STATEMENTS.format(server.suffix))
        server.ksql("INSERT INTO charges VALUES ('a', 7); INSERT INTO charges VALUES ('b', 1);")
        server.wait_for_rows("SELECT * FROM energy;", [["a", 7], ["b", 1]])
        assert server.stop() == 0
        server.start()
        server.ksql("INSERT INTO charges VALUES ('a', 1);")
        server.wait_for_rows("SELECT * FROM energy;", [["a", 8], ["b", 1]])
