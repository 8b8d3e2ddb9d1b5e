"""Debezium's PostgreSQL connector in Kafka's own Connect worker, standalone, and what it writes."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from support.apache_kafka import AVAILABLE as KAFKA_AVAILABLE
from support.apache_kafka import LIBS, MISSING, ROOT, TELEMETRY
from support.ports import HOST, free_port

POM = ROOT / "tools" / "debezium" / "pom.xml"
JARS = ROOT / ".cache" / "debezium-3.3.1" / "libs"
FETCH_TIMEOUT_S = 600.0
HEAP = "384m"
JSON_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"
CONNECTOR = "io.debezium.connector.postgresql.PostgresConnector"


def jars() -> Path:
    """The folder of its jars, fetched once; skips where that is impossible."""
    if not KAFKA_AVAILABLE:
        pytest.skip(MISSING)
    if not JARS.exists():
        maven = shutil.which("mvn")
        if maven is None:
            pytest.skip("needs Debezium's jars, and there is no mvn to fetch them")
        partial = JARS.with_name(f"libs.{os.getpid()}")
        done = subprocess.run(
            [
                *(maven, "--batch-mode", "--quiet", "-f", str(POM)),
                *("dependency:copy-dependencies", f"-DoutputDirectory={partial}"),
            ],
            capture_output=True,
            text=True,
            timeout=FETCH_TIMEOUT_S,
        )
        if done.returncode != 0:
            pytest.skip(f"Debezium's jars cannot be fetched: {done.stdout[-500:]}")
        with contextlib.suppress(OSError):  # another process was faster
            partial.rename(JARS)
    return JARS


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
