"""The registry's brokers are killed and started again: clients wait a little, and see no error."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from support.node_process import NodeProcess
from support.registry_member import SESSION_TIMEOUT_MS
from support.registry_process import registry_process
from support.registry_writers import RegistryWriters

BETWEEN_WRITES = 60
LONG_S = 1.3 * SESSION_TIMEOUT_MS / 1000
"""The broker is away for so long that its group has forgotten who leads."""


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "times_away_s",
    [
        pytest.param((LONG_S,), id="once"),
        pytest.param((0, LONG_S, 0), id="again and again", marks=pytest.mark.slow),
    ],
)
def test_writers_see_no_error_when_the_broker_is_killed_and_started_again(
    tmp_path: Path, times_away_s: tuple[float, ...]
) -> None:
    node = NodeProcess(tmp_path)
    with ExitStack() as stack:
        stack.callback(node.stop)
        node.start()
        first = stack.enter_context(registry_process(node.bootstrap_servers))
        second = stack.enter_context(registry_process(node.bootstrap_servers, first.topic))
        instances = [first, second]
        with RegistryWriters(instances, 4, is_patient=False) as writers:
            for away_s in times_away_s:
                writers.progress(BETWEEN_WRITES)
                node.kill()
                time.sleep(away_s)  # what is tested is how long it is away
                node.start()
            writers.progress(BETWEEN_WRITES)
        fresh = stack.enter_context(registry_process(node.bootstrap_servers, first.topic))
        writers.check([*instances, fresh])
