"""`barnabas connect start` as a process: files of connectors, offsets that outlive it, its end."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from barnabas.connect.daemon_threads import DaemonThreads
from support.connect.hanging import HANGING
from support.connect.side_by_side import FILE_SINK, FILE_SOURCE, Step, answer
from support.connect.worker import OurWorker
from support.node_process import wait_until
from support.patience import PATIENCE_S

ALLOWED = {"barnabas.connect.plugins": HANGING.rpartition(".")[0]}


def test_a_worker_goes_on_where_it_was(tmp_path: Path, kafka_bootstrap_servers: str) -> None:
    worker = OurWorker(tmp_path, kafka_bootstrap_servers, "alone0")
    lines, copied = tmp_path / "in.txt", tmp_path / "out.txt"
    source, sink = tmp_path / "source.properties", tmp_path / "sink.json"
    lines.write_text("one\ntwo\n")
    settings = {"name": "alone0", "connector.class": FILE_SOURCE, "file": lines, "topic": "alone0"}
    source.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    config = {"connector.class": FILE_SINK, "file": str(copied), "topics": "alone0"}
    sink.write_text(json.dumps({"name": "copy-alone0", "config": config}))
    command = worker.command

    def with_files() -> list[str]:
        return [*command(), str(source), str(sink)]

    worker.command = with_files  # type: ignore[method-assign]
    try:
        for more, offset in (("", 2), ("three\n", 3)):
            with lines.open("a") as file:
                file.write(more)
            worker.start()
            taken = Step(
                "GET",
                "/connectors/copy-{tag}/offsets",
                until=lambda found, end=offset: (  # type: ignore[misc]
                    [one["offset"]["kafka_offset"] for one in found["offsets"]] == [end]
                ),
            )
            assert answer(worker, taken)[1]["offsets"][0]["offset"] == {"kafka_offset": offset}
            assert worker.kill() == 0
        assert copied.read_text() == "one\ntwo\nthree\n"
    finally:
        worker.close()


@pytest.mark.slow
@pytest.mark.parametrize("group", ["hangs0", None])
def test_a_connector_that_hangs_does_not_keep_a_worker_from_its_end(
    tmp_path: Path, kafka_bootstrap_servers: str, group: str | None
) -> None:
    worker = OurWorker(tmp_path, kafka_bootstrap_servers, "hangs0", group=group, settings=ALLOWED)
    begun = tmp_path / "begun"
    config = {"connector.class": HANGING, "begun": str(begun)}

    def put() -> None:
        while not begun.exists():  # while the group begins it answers 409
            worker.ask("PUT", "/connectors/hangs0/config", config)

    threads = DaemonThreads(1, "asks")
    try:
        worker.start()
        asked = threads.submit(put)  # a standalone worker does not answer
        wait_until(begun.exists, "the start")
        assert worker.kill() == 0
        asked.exception(PATIENCE_S)
    finally:
        worker.close()


@pytest.mark.slow
def test_a_file_whose_connector_hangs_does_not_keep_a_worker_from_its_end(
    tmp_path: Path, kafka_bootstrap_servers: str
) -> None:
    begun, file = tmp_path / "begun", tmp_path / "hangs.properties"
    file.write_text(f"name=hangs1\nconnector.class={HANGING}\nbegun={begun}\n")
    worker = OurWorker(tmp_path, kafka_bootstrap_servers, "hangs1", files=[file], settings=ALLOWED)
    try:
        worker.launch()
        wait_until(begun.exists, "the start")
        assert worker.kill() == 0
    finally:
        worker.close()


def test_what_fails_is_logged_once_and_without_secrets(
    tmp_path: Path, kafka_bootstrap_servers: str
) -> None:
    folder = tmp_path / "hush-hush"
    folder.mkdir()
    secrets = tmp_path / "secrets.properties"
    secrets.write_text(f"file={folder}\n")
    provider = {
        "config.providers": "file",
        "config.providers.file.class": (
            "org.apache.kafka.common.config.provider.FileConfigProvider"
        ),
        "barnabas.connect.restart.enabled": "false",
    }
    worker = OurWorker(tmp_path / "w", kafka_bootstrap_servers, "quiet0", settings=provider)
    reference = f"${{file:{secrets}:file}}"
    config = {"connector.class": FILE_SOURCE, "file": reference, "topic": "quiet0"}
    try:
        worker.start()
        worker.ask("PUT", "/connectors/quiet0/config", config)
        failed = answer(worker, Step("GET", "/connectors/{tag}/status", until=is_failed))
        assert "[hidden]" in failed[1]["tasks"][0]["trace"]
        worker.ask("PUT", "/connectors/wrong0/config", {"connector.class": reference})
        assert worker.kill() == 0
        log = worker.log()
        assert "hush" not in log
        assert log.count("IsADirectoryError") == 1, log
        assert "[hidden]" in log
        # Nor is it told by a worker that a file of a connector ends.
        wrong = tmp_path / "wrong.json"
        wrong.write_text(json.dumps({"name": "w", "config": {"connector.class": reference}}))
        command = [*worker.command(), str(wrong)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 1
        assert "matches [hidden]" in done.stderr
        assert "hush" not in done.stderr
    finally:
        worker.close()


def is_failed(status: Any) -> bool:
    return any(one["state"] == "FAILED" for one in status.get("tasks", ()))
