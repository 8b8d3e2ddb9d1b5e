"""A database that is changed all the time is captured and copied by a worker: all are equal."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.app.testing import Kafka
from support.connect.copying import Copying
from support.connect.database_story import Story
from support.connect.postgres import postgres


@pytest.mark.slow
def test_topics_and_the_copy_equal_the_tables(kafka: Kafka, tmp_path: Path) -> None:
    with postgres() as server:
        story = Story(server, 1, pause_s=0.002)
        copied = Copying(kafka.bootstrap_servers, tmp_path, story, count=1, is_exactly_once=True)
        try:
            story.start()
            copied.start()
            copied.wait(lambda: story.counts["rows"] > 700, lambda: story.counts)
            story.stop()
            copied.check()
        finally:
            story.close()
            copied.close()
