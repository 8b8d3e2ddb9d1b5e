"""docs/postgres-to-iceberg.md as printed: its files and its commands, on free ports."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from support.connect.postgres import Postgres, needs_postgres
from support.foreground import first_line, running
from support.node_process import wait_until
from support.ports import free_port
from support.spark import needs_spark

TIMEOUT_S = 600
PAGE = (Path(__file__).parents[2] / "docs" / "postgres-to-iceberg.md").read_text()
BARNABAS = f"{sys.executable} -m barnabas"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(TIMEOUT_S),
    needs_postgres,
    needs_spark,
]


class Page:
    """The page's commands and files, with the test's server, ports and directory."""

    def __init__(self, server: Postgres, directory: Path) -> None:
        self.server, self.directory = server, directory
        self.broker_port, self.worker_port = free_port(), free_port()
        (self.sql,) = self._blocks("sql")
        (self.properties,) = self._blocks("properties")
        self.connectors = self._blocks("json")
        (self.program,) = self._blocks("python")
        self.commands = [line for text in self._blocks("sh") for line in text.splitlines()]

    def _blocks(self, kind: str) -> list[str]:
        return [self.text(text) for text in re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)]

    @property
    def ports(self) -> list[str]:
        """Options of `barnabas dev`: any free port for the controller."""
        return ["--port", str(self.broker_port), "--controller-port", "0"]

    def text(self, text: str) -> str:
        text = text.replace("/tmp/warehouse", str(self.directory / "warehouse"))
        text = text.replace("localhost:9092", f"127.0.0.1:{self.broker_port}")
        return text.replace('"5432"', f'"{self.server.port}"')

    def lines(self, first_words: str) -> list[str]:
        """The page's commands that begin so."""
        found = [line for line in self.commands if line.startswith(first_words)]
        assert found, first_words
        return found

    def run(self, command: str) -> str:
        """Run a line of a shell to its end; fails if it does."""
        here = {
            "PGHOST": "127.0.0.1",
            "PGPORT": str(self.server.port),
            "PGPASSWORD": self.server.password,
            "BARNABAS_BOOTSTRAP_SERVERS": f"127.0.0.1:{self.broker_port}",
            "BARNABAS_CONNECT_URL": f"http://127.0.0.1:{self.worker_port}",
        }
        done = subprocess.run(
            ["bash", "-euc", re.sub("^barnabas ", f"{BARNABAS} ", command)],
            cwd=self.directory,
            env=os.environ | here,
            capture_output=True,
            text=True,
            timeout=110,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout

    def rows(self) -> list[str]:
        """What the page's program prints; nothing before the table is there."""
        done = subprocess.run(
            [sys.executable, "-c", self.program], capture_output=True, text=True, check=False
        )
        return sorted(done.stdout.splitlines())


@pytest.fixture
def page(database_server: Postgres, tmp_path: Path) -> Iterator[Page]:
    page = Page(database_server, tmp_path)
    (tmp_path / "shop.sql").write_text(page.sql)
    (wal_level,) = page.lines("psql -U postgres -c")
    assert "wal_level = logical" in wal_level  # of the whole machine: this server has it
    (load,) = page.lines("psql -U postgres -f")
    page.run(load)
    try:
        yield page
    finally:
        database_server.drop_database("shop")
        database_server.run("DROP ROLE capture")


def test_changes_of_the_table_reach_iceberg(page: Page) -> None:
    worker = f"{page.properties}listeners=http://127.0.0.1:{page.worker_port}\n"
    worker = worker.replace("=connect.offsets", f"={page.directory}/connect.offsets")
    (page.directory / "worker.properties").write_text(worker)
    for name, text in zip(("capture", "lake"), page.connectors, strict=True):
        (page.directory / f"{name}.json").write_text(text)
    (dev,) = page.lines("barnabas dev")
    (start,) = page.lines("barnabas connect start")
    create_capture, create_lake = page.lines("barnabas connect create")
    (consume,) = page.lines("barnabas consume")
    (status,) = page.lines("barnabas connect status")
    with ExitStack() as stack:
        broker = stack.enter_context(running(*dev.split()[1:], *page.ports))
        first_line(broker)
        properties = str(page.directory / "worker.properties")
        stack.enter_context(running(*start.split()[1:-1], properties))
        wait_until(lambda: _succeeds(page, status), "the worker")
        page.run(create_capture)
        wait_until(lambda: _succeeds(page, f"{consume} -n 2"), "a topic with an event for each row")
        page.run(create_lake)
        wait_until(
            lambda: page.rows() == ["1 tea 2.5", "2 milk 1.2"],
            "the rows in the table",
            TIMEOUT_S / 2,
            shown=lambda: page.run(status),
        )
        for change in page.lines("psql -U postgres shop"):
            page.run(change)
        wait_until(
            lambda: page.rows() == ["1 tea 2.8"], "the changes", shown=lambda: page.run(status)
        )


def _succeeds(page: Page, command: str) -> bool:
    try:
        page.run(command)
    except AssertionError:
        return False
    return True
