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
AWAY_S = (0, 1.3 * SESSION_TIMEOUT_MS / 1000, 0)
"""How long the broker is away: the second time its group has forgotten who leads."""


@pytest.mark.timeout(300)
def test_writers_see_no_error_when_the_broker_is_killed_and_started_again(tmp_path: Path) -> None:
    node = NodeProcess(tmp_path)
    with ExitStack() as stack:
        stack.callback(node.stop)
        node.start()
        first = stack.enter_context(registry_process(node.bootstrap_servers))
        second = stack.enter_context(registry_process(node.bootstrap_servers, first.topic))
        instances = [first, second]
        with RegistryWriters(instances, 4, is_patient=False) as writers:
            for away_s in AWAY_S:
                writers.progress(BETWEEN_WRITES)
                node.kill()
                time.sleep(away_s)  # what is tested is how long it is away
                node.start()
            writers.progress(BETWEEN_WRITES)
        fresh = stack.enter_context(registry_process(node.bootstrap_servers, first.topic))
        writers.check([*instances, fresh])
