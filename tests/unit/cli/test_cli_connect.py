"""`barnabas connect` against a worker's REST interface: output, exit codes, files."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from barnabas.cli.connect.apply import Difference, differences
from barnabas.cli.connect.files import Wanted, read_file, read_folder
from barnabas.cli.errors import CliError, ExitCode
from support.cli import run_cli

INFO = {
    "name": "lines",
    "config": {"name": "lines", "connector.class": "FileStreamSource", "topic": "a"},
    "tasks": [{"connector": "lines", "task": 0}],
    "type": "source",
}
STATUS = {
    "name": "lines",
    "connector": {"state": "RUNNING", "worker_id": "w:8083"},
    "tasks": [{"id": 0, "state": "FAILED", "worker_id": "w:8083", "trace": "Bad: lost\n\tat x"}],
    "type": "source",
}


class FakeWorker:
    """Answers from a table; `seen` has what was asked."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, Any]] = []
        self.answers: dict[tuple[str, str], tuple[int, Any]] = {}
        world = self

        class Handler(BaseHTTPRequestHandler):
            def _answer(self) -> None:
                size = int(self.headers.get("content-length") or 0)
                body = json.loads(self.rfile.read(size)) if size else None
                world.seen.append((self.command, self.path, body))
                missing = (404, {"error_code": 404, "message": "HTTP 404 Not Found"})
                status, value = world.answers.get((self.command, self.path), missing)
                data = b"" if value is None else json.dumps(value).encode()
                self.send_response(status)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_PUT = do_POST = do_DELETE = do_PATCH = _answer  # noqa: N815

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeWorker]:
    made = FakeWorker()
    monkeypatch.setenv("BARNABAS_CONNECT_URL", made.url)
    yield made
    made.close()


def test_the_lag_without_a_broker(worker: FakeWorker) -> None:
    status = {**STATUS, "type": "sink"}
    worker.answers["GET", "/connectors/lines/status"] = (200, status)
    offsets = {"partition": {"kafka_topic": "a", "kafka_partition": 0}, "offset": {}}
    worker.answers["GET", "/connectors/lines/offsets"] = (200, {"offsets": [offsets]})
    result = run_cli("connect", "status", "lines", "--lag", "-b", "127.0.0.1:1")
    assert result.code == ExitCode.UNREACHABLE
    (line,) = result.err.splitlines()  # and none of the client library's own
    assert line.startswith("barnabas: no broker answers at 127.0.0.1:1")


def test_status_tells_failures_by_exit_code_and_first_line(worker: FakeWorker) -> None:
    worker.answers["GET", "/connectors?expand=status"] = 200, {"lines": {"status": STATUS}}
    shown = run_cli("connect", "status")
    assert shown.code == ExitCode.PROBLEMS
    assert "Bad: lost" in shown.text
    assert "at x" not in shown.text
    worker.answers["GET", "/connectors/lines/status"] = 200, {**STATUS, "tasks": []}
    assert run_cli("connect", "status", "lines").code == ExitCode.DONE


def test_status_shows_what_a_task_waits_for(worker: FakeWorker) -> None:
    waits = "downloading org.apache.spark:spark-avro: 12 MB so far"
    task = {"id": 0, "state": "UNASSIGNED", "worker_id": "w:8083", "trace": waits}
    worker.answers["GET", "/connectors/lines/status"] = 200, {**STATUS, "tasks": [task]}
    shown = run_cli("connect", "status", "lines")
    assert shown.code == ExitCode.DONE
    assert ["lines", "0", "UNASSIGNED", "w:8083"] in [line.split() for line in shown.lines]
    assert shown.lines[-1] == f"lines, task 0: {waits}"


LONG = "must be owner of table orders; " * 10 + "GRANT it: ALTER TABLE orders OWNER TO me"
LOST = "Caused by: java.io.IOException: lost\n\tat y\n"
CONNECT_ERROR = "org.apache.kafka.connect.errors.ConnectException"


@pytest.mark.parametrize(
    ("trace", "text"),
    [
        ("", ""),
        (f"{CONNECT_ERROR}: {LONG}\n\tat a(b.py:1)\n", LONG),
        (f"{CONNECT_ERROR}: first line\nsecond\n\tat x\n", "first line\n  second"),
        (f"{CONNECT_ERROR}\n\tat x\n", "ConnectException"),
        (
            f"{CONNECT_ERROR}: Exiting task\n\tat x\n{LOST}Caused by: ValueError: no number\n\t...",
            "Exiting task\n  caused by: lost\n  caused by: ValueError: no number",
        ),
        (f"{CONNECT_ERROR}: it was lost\n\tat x\nCaused by: a.B: lost\n\tat y\n", "it was lost"),
        (f"{CONNECT_ERROR}: x\n\tat y\n\nTried again at noon.", "x\n  Tried again at noon."),
    ],
)
def test_failures_are_shown_whole_and_without_javas_classes(
    worker: FakeWorker, trace: str, text: str
) -> None:
    failed = {"state": "FAILED", "worker_id": "w:1", "trace": trace}
    status = {"name": "c", "type": "sink", "connector": failed, "tasks": [{"id": 0, **failed}]}
    worker.answers["GET", "/connectors/c/status"] = 200, status
    shown = run_cli("connect", "status", "c")
    assert CONNECT_ERROR not in shown.text
    if text:
        assert f"c: {text}\n" in shown.text
        assert f"c, task 0: {text}\n" in shown.text
    assert json.loads(run_cli("connect", "status", "c", "--json").text) == [status]


def test_lists_and_shows(worker: FakeWorker) -> None:
    path = "/connectors?expand=status&expand=info"
    worker.answers["GET", path] = 200, {"lines": {"status": STATUS, "info": INFO}}
    assert "0/1 running" in run_cli("connect", "list").text
    worker.answers["GET", "/connectors/lines/config"] = 200, INFO["config"]
    assert "topic=a" in run_cli("connect", "config", "lines").text.splitlines()
    shown = run_cli("connect", "config", "lines", "--json")
    assert json.loads(shown.text) == {"name": "lines", "config": INFO["config"]}


def test_refusals_have_exit_codes(worker: FakeWorker) -> None:
    assert run_cli("connect", "show", "none").code == ExitCode.NOT_FOUND
    worker.answers["POST", "/connectors"] = 409, {"error_code": 409, "message": "already exists"}
    shown = run_cli("connect", "create", "c", "connector.class=X")
    assert shown.code == ExitCode.REFUSED
    assert worker.seen[-1][2] == {"name": "c", "config": {"connector.class": "X", "name": "c"}}
    url = worker.url.replace("127.0.0.1", "localhost").rpartition(":")[0] + ":1"
    assert run_cli("connect", "list", "--url", url).code == ExitCode.UNREACHABLE


def test_a_rebalance_is_waited_for(worker: FakeWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    path = ("PUT", "/connectors/c/stop")
    text = "Cannot complete request momentarily due to stale configuration"
    worker.answers[path] = 409, {"error_code": 409, "message": text}
    monkeypatch.setattr("time.sleep", lambda _s: worker.answers.update({path: (204, None)}))
    assert run_cli("connect", "stop", "c").code == ExitCode.DONE


def test_apply_validates_all_and_changes_what_differs(worker: FakeWorker, tmp_path: Path) -> None:
    (tmp_path / "lines.properties").write_text("connector.class=FileStreamSource\ntopic=b\n")
    (tmp_path / "new.json").write_text(
        json.dumps({"name": "new", "config": {"connector.class": "X"}, "initial_state": "paused"})
    )
    worker.answers["GET", "/connectors?expand=info"] = 200, {"lines": {"info": INFO}}
    shown = run_cli("connect", "diff", "-f", str(tmp_path))
    assert shown.code == ExitCode.PROBLEMS
    assert "topic" in shown.text
    wrong = {"name": "X", "value": "1", "errors": ["Too small"]}
    validate = "/connector-plugins/{}/config/validate"
    good = {"error_count": 0, "configs": []}
    worker.answers["PUT", validate.format("FileStreamSource")] = 200, good
    answer = {"error_count": 1, "configs": [{"value": wrong}]}
    worker.answers["PUT", validate.format("X")] = 200, answer
    refused = run_cli("connect", "apply", "-f", str(tmp_path))
    assert (refused.code, worker.seen[-1][1]) == (ExitCode.REFUSED, validate.format("X"))
    worker.answers["PUT", validate.format("X")] = 200, good
    worker.answers["POST", "/connectors"] = 201, {**INFO, "name": "new"}
    worker.answers["PUT", "/connectors/lines/config"] = 200, INFO
    assert run_cli("connect", "apply", "-f", str(tmp_path)).code == ExitCode.DONE
    assert worker.seen[-1] == (
        "POST",
        "/connectors",
        {
            "name": "new",
            "config": {"connector.class": "X", "name": "new"},
            "initial_state": "PAUSED",
        },
    )


def test_differences_and_pruning() -> None:
    wanted = [Wanted("a", {"x": "1"}), Wanted("b", {"x": "1"})]
    now = {"a": {"x": "2", "y": "3"}, "b": {"x": "1"}, "c": {}}
    assert differences(wanted, now, prune=True) == [
        Difference("a", "change", [("x", "2", "1"), ("y", "3", None)]),
        Difference("c", "delete"),
    ]
    assert differences(wanted, now, prune=False)[1:] == []


def test_an_empty_folder_does_not_mean_that_there_are_to_be_no_connectors(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no connector")
    with pytest.raises(CliError, match="there is no file of a connector in it"):
        read_folder(str(tmp_path))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.json", "{", "Expecting"),
        ("a.json", "[]", "describes no connector"),
        ("a.json", '{"name": "b", "topic": "t"}', r"connector\.class is missing"),
        ("a.json", '{"connector.class": {}}', r"connector\.class is not a text"),
        ("a.json", '{"name": "b", "config": {"name": "c", "connector.class": "X"}}', "is not b"),
        ("a.json", '{"config": {"connector.class": "X"}, "initial_state": 1}', "initial_state"),
    ],
)
def test_wrong_files(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(CliError, match=message):
        read_file(str(tmp_path / name))


def test_files_of_all_kinds(tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    (tmp_path / "a.yaml").write_text("connector.class: X\ntasks.max: 2\n")
    (tmp_path / "b.json").write_text('{"connector.class": "X", "tasks.max": 2, "z": null}')
    (tmp_path / "c.properties").write_text("connector.class=X\ntasks.max=2\n")
    (tmp_path / "notes.txt").write_text("none of these")
    found = read_folder(str(tmp_path))
    assert [one.name for one in found] == ["a", "b", "c"]
    configs = [one.config for one in found]
    assert configs == [
        {"connector.class": "X", "tasks.max": "2", "name": name} for name in ("a", "b", "c")
    ]
    (tmp_path / "d.json").write_text('{"connector.class": "X", "name": "a"}')
    with pytest.raises(CliError, match="both describe a"):
        read_folder(str(tmp_path))
