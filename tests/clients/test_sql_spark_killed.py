"""A query on Spark whose process is killed goes on from its checkpoint."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka.cimpl import Message
from test_sql_spark import JOIN_AND_GROUP, World, last

from barnabas.app.testing import Kafka
from barnabas.sql.plan.encoding import encode_plan
from barnabas.sql.plan.steps import QueryPlan
from support.spark_process import SparkProcess

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
PROCESS = Path(__file__).with_name("sql_spark_process.py")


class Killed(SparkProcess):
    """A process with one query."""

    def __init__(
        self,
        world: World,
        plan: QueryPlan,
        guarantee: str,
        master: str = "local[2]",
        reader: str = "workers",
    ) -> None:
        path = world.directory / "plan.json.of.query"
        path.write_text(encode_plan(plan), encoding="utf-8")
        arguments = [str(path), world.kafka.bootstrap_servers, str(world.directory)]
        super().__init__(PROCESS, [*arguments, guarantee, master, reader])

    def wait_for(self, batches: int) -> None:
        for line in self.lines():
            if line.startswith("batches ") and int(line.split()[1]) >= batches:
                return
        raise AssertionError("the query ended")


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_nothing_is_lost_or_counted_twice(kafka: Kafka, tmp_path: Path, guarantee: str) -> None:
    world = World(kafka, None, tmp_path)  # type: ignore[arg-type]
    plan = world.plan(JOIN_AND_GROUP)
    world.send(5)
    world.send_stream(1_500)
    want = world.expected(plan)
    wanted = {r.key: (r.value, r.timestamp_ms) for r in want}
    # The second goes on where the first was killed, which read in another way.
    for batches, reader in ((2, "spark"), (3, "workers")):
        running = Killed(world, plan, guarantee, reader=reader)
        try:
            running.wait_for(batches)
        finally:
            running.kill()
    running = Killed(world, plan, guarantee)
    try:
        got = until_last(world, wanted)
    finally:
        running.kill()
    values = sorted((m.key() or b"", m.value() or b"") for m in got)
    expected = sorted((r.key or b"", r.value or b"") for r in want)
    if guarantee == "exactly_once_v2":
        assert values == expected
    else:
        assert set(values) == set(expected)


def until_last(world: World, wanted: dict[bytes | None, tuple[bytes | None, int]]) -> list[Message]:
    """All results, once the last ones are there."""
    consumer = world.kafka.consumer(world.names["q"], isolation_level="read_committed")
    got: list[Message] = []
    try:
        while last(got) != wanted:
            got += [m for m in consumer.consume(100, 1.0) if not m.error()]
        return got + [m for m in consumer.consume(100, 5.0) if not m.error()]
    finally:
        consumer.close()
