"""A sink that hangs while it writes does not keep a process from its end."""

from __future__ import annotations

import subprocess
import sys

HANGS = """
from threading import Event

from barnabas.connect.connectors.base import SinkConnector, SinkWriter
from barnabas.connect.testing import ConnectKit

begun = Event()

class Writer(SinkWriter):
    def write(self, records, where):
        begun.set()
        Event().wait()

class Hanging(SinkConnector):
    def task_settings(self, tasks_max):
        return [{}]

    def writer(self, context):
        return Writer()

kit = ConnectKit()
kit.create("t")
kit.produce("t", b"v")
kit.start("hangs", {"connector.class": f"{__name__}.Hanging", "topics": "t"})
assert begun.wait(60)
"""


def test_a_sink_that_hangs_does_not_keep_a_process_from_its_end() -> None:
    done = subprocess.run([sys.executable, "-c", HANGS], timeout=120, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
