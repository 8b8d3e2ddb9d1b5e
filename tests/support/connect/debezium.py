"""Debezium's PostgreSQL connector in Kafka's own Connect worker, standalone, and what it writes."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import pytest
from confluent_kafka import Consumer, Message

from support.apache_kafka import AVAILABLE as KAFKA_AVAILABLE
from support.apache_kafka import LIBS, MISSING, QUICK_JVM, ROOT, TELEMETRY
from support.connect.capture import PREFIX
from support.connect.events import Event
from support.foreign_programs import maven_jars
from support.node_process import wait_until
from support.patience import PATIENCE_S
from support.ports import HOST, free_port

POM = ROOT / "tools" / "debezium" / "pom.xml"
JARS = ROOT / ".cache" / "debezium-3.3.1" / "libs"
HEAP = "384m"
JSON_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"
CONNECTOR = "io.debezium.connector.postgresql.PostgresConnector"


def jars() -> Path:
    """The folder of its jars, fetched once; skips where that is impossible."""
    if not KAFKA_AVAILABLE:
        pytest.skip(MISSING)
    return maven_jars(POM, JARS)


@contextlib.contextmanager
def debezium(
    folder: Path, bootstrap_servers: str, settings: Mapping[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """Run the connector, with JSON and schemas, until the block ends; logs go to `folder`/log."""
    java = shutil.which("java")
    libs = jars()
    assert java is not None
    worker = {
        "bootstrap.servers": bootstrap_servers,
        "key.converter": JSON_CONVERTER,
        "value.converter": JSON_CONVERTER,
        "offset.storage.file.filename": str(folder / "offsets"),
        "offset.flush.interval.ms": "500",
        "listeners": f"http://{HOST}:{free_port()}",
        "plugin.path": str(libs.parent),
        "plugin.discovery": "only_scan",
    }
    connector = {"name": "debezium", "connector.class": CONNECTOR, "tasks.max": "1", **settings}
    (folder / "worker.properties").write_text(_properties(worker))
    (folder / "connector.json").write_text(json.dumps({"name": "debezium", "config": connector}))
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            [
                *(
                    java,
                    f"-Xmx{HEAP}",
                    *QUICK_JVM,
                    "-Dfile.encoding=UTF-8",
                    f"-Dlog4j2.configurationFile={TELEMETRY}",
                ),
                *("-cp", f"{LIBS[0]}/*", "org.apache.kafka.connect.cli.ConnectStandalone"),
                *(str(folder / "worker.properties"), str(folder / "connector.json")),
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _properties(settings: Mapping[str, str]) -> str:
    return "".join(f"{name}={value}\n" for name, value in settings.items())


class Told:
    """What Debezium writes to its topics, as it comes; to be closed."""

    def __init__(self, bootstrap_servers: str, folder: Path) -> None:
        """`folder` has its log."""
        self.events: list[Event] = []
        self._folder = folder
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap_servers,
                "group.id": "compare",
                "auto.offset.reset": "earliest",
                "topic.metadata.refresh.interval.ms": 300,
            }
        )
        self._consumer.subscribe([f"^{PREFIX}\\..*"])

    def read(self, is_enough: Callable[[], bool]) -> None:
        """Read until it is."""

        def has_come() -> bool:
            message = self._consumer.poll(0.2)
            if message is not None and message.error() is None:  # else no topic is there yet
                self.events.append(_event(message))
            return is_enough()

        log = self._folder / "log"
        wait_until(has_come, "records", 3 * PATIENCE_S, lambda: log.read_text()[-3000:])

    def close(self) -> None:
        """Leave the group."""
        self._consumer.close()


def _event(message: Message) -> Event:
    key, value = message.key(), message.value()
    headers = [
        (str(name), bytes(text or b"").decode())
        for name, text in cast(Any, message.headers() or ())
    ]
    return str(message.topic()), key and json.loads(key), value and json.loads(value), headers
