"""The share-group source with Apache Kafka's broker, and under Spark, whose driver is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.app.testing import Kafka
from support.apache_kafka import ApacheKafka, needs_apache_kafka
from support.cluster_processes import ClusterProcesses
from support.node_process import wait_until
from support.share_query import ShareQuery, begin_at_the_start

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
ONE_REPLICA = {
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "offsets.topic.replication.factor": "1",
}
RECORDS = 2000


@needs_apache_kafka
def test_eight_readers_of_one_partition_of_apache_kafka(tmp_path: Path) -> None:
    with (
        ClusterProcesses(tmp_path / "kafka", 1, ONE_REPLICA, program=ApacheKafka()) as cluster,
        Kafka(cluster.bootstrap_servers) as kafka,
    ):
        topic, group = kafka.topic(), kafka.name("share")
        begin_at_the_start(kafka.admin, group)
        kafka.produce(topic, [str(i) for i in range(RECORDS)])
        options = {
            "kafka.bootstrap.servers": cluster.bootstrap_servers,
            "kafka.group.id": group,
            "subscribe": topic,
            "readers": "8",
            "maxRecordsPerBatch": "500",
        }
        query = ShareQuery(tmp_path / "query", options)
        rows = query.run(RECORDS, idle_max=300)
        assert sorted(row["offset"] for row in rows) == list(range(RECORDS))
        ledger = query.reader._source()._books.ledger

        def is_confirmed() -> bool:
            query.reader.latestOffset()
            return ledger.owed_count == 0

        wait_until(is_confirmed, "all acknowledgements")
        query.reader.stop()
        other = ShareQuery(tmp_path / "other", options)
        assert other.run(1, idle_max=20) == []
        other.reader.stop()


def _sink(directory: Path) -> dict[int, list[int]]:
    """The offsets that each batch has written; a batch that runs again writes its file again."""
    files = sorted(directory.glob("*.batch"))
    return {int(file.stem): json.loads(file.read_text()) for file in files}


def _wait_for(count: Callable[[], int], wanted: int, driver: subprocess.Popen[bytes]) -> None:
    wait_until(lambda: count() >= wanted or driver.poll() is not None, "records", 240)


def test_a_spark_driver_that_is_killed_loses_and_repeats_nothing(
    kafka: Kafka, tmp_path: Path
) -> None:
    topic, group = kafka.topic(), kafka.name("share")
    begin_at_the_start(kafka.admin, group)
    kafka.produce(topic, [str(i) for i in range(RECORDS)])
    sink = tmp_path / "sink"
    sink.mkdir()
    program = ROOT / "tests" / "support" / "share_spark_driver.py"
    arguments = [sys.executable, str(program), kafka.bootstrap_servers, group, topic, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    def count() -> int:
        return len({offset for offsets in _sink(sink).values() for offset in offsets})

    for wanted in (200, 900, RECORDS):
        with open(tmp_path / "telemetry", "ab") as telemetry:
            driver = subprocess.Popen(
                arguments, env=environment, stderr=telemetry, start_new_session=True
            )
        try:
            _wait_for(count, wanted, driver)
            assert driver.poll() is None, (tmp_path / "telemetry").read_text()[-4000:]
        finally:
            os.killpg(driver.pid, signal.SIGKILL)
            driver.wait()
    written = [offset for offsets in _sink(sink).values() for offset in offsets]
    assert sorted(written) == list(range(RECORDS))
