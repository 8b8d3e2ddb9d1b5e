"""docs/connect/distributed.md shows settings that a worker takes, with their defaults."""

from __future__ import annotations

import re
from pathlib import Path

from barnabas.base.config.properties import parse_properties
from barnabas.connect.worker.distributed.start import distributed_herder
from barnabas.connect.worker.restarts import RestartPolicy
from support.connect.herder_world import FakeEngine

DOC = Path(__file__).parents[5] / "docs" / "connect" / "distributed.md"


def test_the_example_is_a_workers_file() -> None:
    found = re.search(r"```properties\n(.*?)```", DOC.read_text(), re.DOTALL)
    assert found is not None
    settings = parse_properties(found[1])
    herder = distributed_herder(
        settings, FakeEngine(), "http://host1:8083/", worker_id="host1:8083"
    )
    assert herder.topics_store.offset_topic.name == "connect-offsets"
    assert herder.rules.group == "connect-cluster"


def test_defaults_of_restarts_are_told() -> None:
    text, policy = DOC.read_text(), RestartPolicy()
    assert policy.is_enabled
    for line in (
        f"`barnabas.connect.restart.backoff.ms` | {policy.backoff_ms},",
        f"`barnabas.connect.restart.backoff.max.ms` | {policy.backoff_ms_max};",
        f"`barnabas.connect.restart.max.attempts` | {policy.attempts_max}:",
    ):
        assert line in text
