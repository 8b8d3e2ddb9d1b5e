"""GET /metrics of a worker."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from barnabas import __version__
from barnabas.connect.tasks.base import TaskId
from barnabas.connect.worker.metrics import worker_metrics
from barnabas.connect.worker.running import StatusListener
from barnabas.schemas.data.errors import ConnectError
from support.connect.herder_world import SINK, SOURCE, FakeTask, HerderWorld
from support.connect.rest_world import RestWorld


def test_figures_have_the_names_of_the_jmx_exporter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = HerderWorld(tmp_path)
    figures = {
        "source-record-poll-total": 7.0,
        "poll-batch-avg-time-ms": 1.5,
        "batch-size-max": 3.0,
        "offset-commit-completion-total": 2.0,
        "total-retries": 1.0,
        "partition-count": 4.0,
        "sink-record-lag": 9.0,
    }
    own = [("mirror_mirrorsourceconnector_record-count", (("topic", "t"),), 5.0)]
    monkeypatch.setattr(FakeTask, "metrics", lambda _self: figures)
    monkeypatch.setattr(FakeTask, "own_metrics", lambda _self: own)
    world.create('a"b', wanted_tasks="2", tasks_max="2")
    world.create("s", class_name=SINK, topics="t")
    world.engine.tasks[TaskId('a"b', 1)].pause()
    text = worker_metrics(world.herder).decode()
    world.herder.close()
    task = 'connector="a\\"b",task="0"'
    for line in (
        "kafka_connect_worker_connector_count 2.0",
        "kafka_connect_worker_task_count 3.0",
        "kafka_connect_worker_task_startup_success_total 3.0",
        "kafka_connect_worker_connector_startup_failure_percentage 0.0",
        'kafka_connect_worker_connector_total_task_count{connector="a\\"b"} 2.0',
        'kafka_connect_worker_connector_paused_task_count{connector="a\\"b"} 1.0',
        f'kafka_connect_connector_class{{connector="a\\"b",connector_class="{SOURCE}"}} 1.0',
        f'kafka_connect_connector_version{{connector="s",connector_version="{__version__}"}} 1.0',
        'kafka_connect_connector_status{connector="s",status="running"} 1.0',
        'kafka_connect_connector_task_status{connector="a\\"b",status="running",task="0"} 1.0',
        f"kafka_connect_source_task_source_record_poll_total{{{task}}} 7.0",
        f"kafka_connect_source_task_poll_batch_avg_time_ms{{{task}}} 1.5",
        f"kafka_connect_connector_task_batch_size_max{{{task}}} 3.0",
        f"kafka_connect_connector_task_offset_commit_completion_total{{{task}}} 2.0",
        f"kafka_connect_task_error_total_retries{{{task}}} 1.0",
        'kafka_connect_sink_task_offset_commit_completion_total{connector="s",task="0"} 2.0',
        'kafka_connect_sink_task_partition_count{connector="s",task="0"} 4.0',
        'kafka_connect_sink_task_sink_record_lag{connector="s",task="0"} 9.0',
        f'kafka_connect_mirror_mirrorsourceconnector_record_count{{{task},topic="t"}} 5.0',
        "# TYPE kafka_connect_source_task_source_record_poll_total counter",
        "# TYPE kafka_connect_worker_task_count gauge",
    ):
        assert line in text.splitlines()
    shape = re.compile(
        r'(# HELP \w+ .+\.)|(# TYPE \w+ (counter|gauge))|\w+({(\w+="([^"\\]|\\.)*",?)+})? [-+.\w]+'
    )
    assert all(shape.fullmatch(line) for line in text.splitlines())


async def test_a_task_that_waits_is_unassigned_everywhere(tmp_path: Path) -> None:
    """While Spark starts, for instance; a trace is the one place for why that clients know."""
    world = RestWorld(tmp_path)
    await world.create()
    listener = world.herder.engine.tasks[TaskId("c", 0)].listener

    async def seen() -> tuple[str, str | None, str]:
        (task,) = (await world.ask("GET", "/connectors/c/status"))[1]["tasks"]
        _, alone = await world.ask("GET", "/connectors/c/tasks/0/status")
        assert (task["state"], task.get("trace")) == (alone["state"], alone.get("trace"))
        text = worker_metrics(world.herder.herder).decode()
        (status,) = re.findall(r'task_status{connector="c",status="(\w+)",task="0"} 1.0', text)
        count = f'kafka_connect_worker_connector_{status}_task_count{{connector="c"}} 1.0'
        assert count in text.splitlines()
        return task["state"], task.get("trace"), status

    for state, tell in (("RUNNING", listener.started), ("PAUSED", listener.paused)):
        listener.waits("Spark is starting")
        assert await seen() == ("UNASSIGNED", "Spark is starting", "unassigned")
        tell()
        assert await seen() == (state, None, state.lower())
        listener.waits("downloading jars")
        assert await seen() == ("UNASSIGNED", "downloading jars", "unassigned")
        listener.waits(None)
        assert await seen() == (state, None, state.lower())
    world.close()


async def test_a_task_that_has_not_run_waits_for_nothing_any_more(tmp_path: Path) -> None:
    world = RestWorld(tmp_path)
    await world.create()
    listener = StatusListener(TaskId("c", 0), world.herder.herder.worker, lambda: None)
    for what in ("Spark is starting", None):
        listener.waits(what)
        (task,) = (await world.ask("GET", "/connectors/c/status"))[1]["tasks"]
        assert (task["state"], task.get("trace")) == ("UNASSIGNED", what)
    listener.failed(ConnectError("lost"))
    listener.waits(None)
    (task,) = (await world.ask("GET", "/connectors/c/status"))[1]["tasks"]
    assert (task["state"], "lost" in task["trace"]) == ("FAILED", True)
    world.close()


async def test_they_are_served_as_text(tmp_path: Path) -> None:
    world = RestWorld(tmp_path)
    answer = await world.send("GET", "/metrics", headers={"accept": "text/plain,*/*;q=0.1"})
    world.close()
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert "kafka_connect_worker_connector_count 0.0\n" in answer.text
