"""`barnabas registry` against a registry in a separate process, with a real node."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.cli import ClusterCli, Result, run_cli
from support.foreground import BARNABAS, end, first_line, running
from support.registry_member import SETTINGS

ROOT = Path(__file__).parents[2]
OVERRIDES = [
    word
    for key, value in SETTINGS.items()
    if key != "schema.compatibility.level"
    for word in ("--override", f"{key}={value}")
]
ORDER = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
NOTE = {"name": "note", "type": "string"}
MONEY = 'syntax = "proto3";\nmessage Money {\n  string currency = 1;\n}\n'
PAYMENT = 'syntax = "proto3";\nimport "money.proto";\nmessage Payment {\n  Money sum = 1;\n}\n'


class RegistryCli:
    """Commands against one registry; `ok` fails where the command does."""

    def __init__(self, url: str) -> None:
        self.url = url

    def run(self, *arguments: str, stdin: bytes = b"") -> Result:
        return run_cli("registry", *arguments, "--url", self.url, stdin=stdin)

    def ok(self, *arguments: str, stdin: bytes = b"") -> Result:
        result = self.run(*arguments, stdin=stdin)
        assert result.code == 0, result.err
        return result

    def json(self, *arguments: str) -> Any:
        return self.ok(*arguments, "--json").json

    def register(self, subject: str, schema: Any, *arguments: str, kind: str = "AVRO") -> Any:
        text = schema if isinstance(schema, str) else json.dumps(schema)
        words = ("schema", "register", subject, "-", "--type", kind, "--json", *arguments)
        return self.ok(*words, stdin=text.encode()).json


@pytest.fixture(scope="module")
def registry(kafka_bootstrap_servers: str) -> Iterator[RegistryCli]:
    arguments = [
        *("registry", "start", "-b", kafka_bootstrap_servers, "--listeners", "http://127.0.0.1:0"),
        *("-o", "kafkastore.topic=_schemas-cli", "-o", "schema.registry.group.id=registry-cli"),
        *OVERRIDES,
    ]
    with running(*arguments, "--log-level", "error", "--json") as process:
        ready = json.loads(first_line(process))
        assert ready["ready"] is True
        assert ready["topic"] == "_schemas-cli"
        assert ready["bootstrap_servers"] == kafka_bootstrap_servers
        assert ready["cluster_id"]
        yield RegistryCli(ready["listeners"][0])
        assert end(process) == 0


def order(*more: Any) -> dict[str, Any]:
    return {**ORDER, "fields": [*ORDER["fields"], *more]}


def test_schemas_are_registered_and_shown(registry: RegistryCli, tmp_path: Path) -> None:
    file = tmp_path / "order.avsc"
    file.write_text(json.dumps(ORDER))
    subject = "show/orders: é"
    made = registry.ok("schema", "register", subject, str(file))
    number = re.fullmatch(rf"{subject}: version 1, id (\d+)\n", made.text)
    assert number is not None
    assert registry.ok("schema", "register", subject, str(file)).text == made.text
    assert subject in registry.ok("subject", "list", "--prefix", "show/").lines
    assert json.loads(registry.ok("schema", "get", subject).text) == ORDER
    assert (
        registry.ok("schema", "get", subject, "1", "--raw").text
        == file.read_text().replace(" ", "").replace("\n", "") + "\n"
    )
    assert registry.json("schema", "get", "--id", number[1])["schema"]
    described = registry.ok("subject", "describe", subject).lines
    assert described[0] == f"{subject}  compatibility BACKWARD  mode READWRITE"
    assert described[1].split() == ["VERSION", "ID", "TYPE", "REFERENCES"]


def test_what_is_not_compatible_is_refused_with_the_place(registry: RegistryCli) -> None:
    registry.register("refused", ORDER)
    refused = registry.run(
        "schema",
        "register",
        "refused",
        "-",
        "--type",
        "AVRO",
        stdin=json.dumps(order(NOTE)).encode(),
    )
    assert refused.code == 1
    assert refused.err.count("\n") == 1
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" in refused.err
    assert "/fields/1" in refused.err
    assert "oldSchema" not in refused.err
    registry.ok("config", "set", "compatibility=NONE", "normalize=true", "--subject", "refused")
    assert registry.json("config", "get", "-s", "refused") == {
        "compatibility": "NONE",
        "normalize": True,
    }
    assert registry.register("refused", order(NOTE))["version"] == 2
    registry.ok("config", "delete", "-s", "refused")
    assert registry.run("config", "get", "-s", "refused", "--own").code == 4
    assert registry.json("config", "get", "-s", "refused")["compatibility"] == "BACKWARD"


def test_a_directory_is_checked(registry: RegistryCli, tmp_path: Path) -> None:
    registry.register("checked", ORDER)
    registry.register("checked-money", MONEY, kind="PROTOBUF")
    (tmp_path / "pay").mkdir()
    files = {
        "checked.avsc": json.dumps(order({**NOTE, "default": ""})),
        "new.json": '{"type": "object"}',
        "pay/payment.proto": PAYMENT,
        "schemas.toml": '["pay/payment.proto"]\nsubject = "checked-payment"\n'
        'references = ["money.proto=checked-money:1"]\n',
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    good = registry.ok("schema", "check", str(tmp_path))
    assert good.lines == [
        "checked.avsc: checked is compatible",
        "new.json: new is new",
        "pay/payment.proto: checked-payment is new",
    ]
    (tmp_path / "checked.avsc").write_text(json.dumps(order(NOTE)))
    (tmp_path / "new.json").write_text('{"type": "objet"}')
    bad = registry.run("schema", "check", str(tmp_path))
    assert bad.code == 1
    assert bad.err == "2 of 3 schemas cannot be registered.\n"
    assert bad.lines[0].startswith("checked.avsc: READER_FIELD_MISSING_DEFAULT_VALUE: ")
    assert "/fields/1" in bad.lines[0]
    assert bad.lines[0].endswith("(version 1)")
    assert bad.lines[1].startswith("new.json: not a valid JSON schema: ")
    assert registry.json("subject", "list", "--prefix", "new") == []


def test_versions_are_compared(registry: RegistryCli) -> None:
    registry.register("compared-money", MONEY, kind="PROTOBUF")
    reference = ("--reference", "money.proto=compared-money")
    registry.register("compared", PAYMENT, *reference, kind="PROTOBUF")
    changed = PAYMENT.replace("Money sum = 1", "Money sum = 1;\n  string note = 2")
    registry.register("compared", changed, *reference, kind="PROTOBUF")
    shown = registry.ok("schema", "diff", "compared").lines
    assert "+  string note = 2;" in shown
    assert " reference money.proto = compared-money version 1" in shown
    assert shown[-2].startswith("BACKWARD: yes")
    registry.ok("config", "set", "compatibility=NONE", "-s", "compared")
    registry.register(
        "compared", changed.replace("string note", "int32 note"), *reference, kind="PROTOBUF"
    )
    verdicts = registry.json("schema", "diff", "compared", "2", "3")["verdicts"]
    assert [verdict["compatible"] for verdict in verdicts] == [False, False]
    assert registry.run("schema", "diff", "compared", "1", "9").code == 4


def test_deletion_and_modes(registry: RegistryCli) -> None:
    registry.register("gone", ORDER)
    registry.register("gone", order({**NOTE, "default": ""}))
    shown = registry.ok("subject", "delete", "gone", "--version", "latest")
    assert shown.text == "gone: deleted versions 2\n"
    rows = registry.json("subject", "describe", "gone", "--deleted")["versions"]
    assert [(row["version"], row["deleted"]) for row in rows] == [(1, False), (2, True)]
    assert registry.run("subject", "delete", "gone", "--permanent").code == 2
    assert registry.json("subject", "delete", "gone", "--permanent", "--yes") == {
        "subject": "gone",
        "versions": [1, 2],
        "permanent": True,
    }
    assert registry.run("subject", "describe", "gone", "--deleted").code == 4
    registry.ok("mode", "set", "readonly", "--subject", "gone")
    assert registry.ok("mode", "get", "--subject", "gone").text == "READONLY\n"
    refused = registry.run("schema", "register", "gone", "-", "--type", "AVRO", stdin=b'"long"')
    assert "[42205]" in refused.err
    registry.ok("mode", "delete", "--subject", "gone")
    assert registry.register("gone", '"long"')["version"] == 3


def test_flags_win_over_the_file(kafka_bootstrap_servers: str, tmp_path: Path) -> None:
    file = tmp_path / "schema-registry.properties"
    file.write_text(
        "listeners=http://127.0.0.1:1\nkafkastore.bootstrap.servers=127.0.0.1:1\n"
        "kafkastore.topic=_schemas-file\nschema.registry.group.id=registry-file\n"
        "schema.compatibility.level=full\n"
    )
    flags = ["-b", kafka_bootstrap_servers, "--listeners", "http://127.0.0.1:0", *OVERRIDES]
    flags += ["-o", "schema.compatibility.level=none", "--log-level", "error"]
    with running("registry", "start", str(file), *flags) as process:
        line = first_line(process)
        match = re.fullmatch(
            r"Schema registry: (http://127\.0\.0\.1:\d+), topic _schemas-file of cluster \S+ at "
            + re.escape(kafka_bootstrap_servers),
            line.strip(),
        )
        assert match is not None, line
        assert RegistryCli(match[1]).json("config", "get") == {"compatibility": "NONE"}
        assert end(process, signal.SIGINT) == 0


def test_what_keeps_it_from_starting_is_one_line(kafka_bootstrap_servers: str) -> None:
    cluster = ClusterCli(kafka_bootstrap_servers)
    cluster.ok("topic", "create", "not-compact", "-p", "1", "-c", "cleanup.policy=delete")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        taken_at = f"http://127.0.0.1:{taken.getsockname()[1]}"
        here = ("-b", kafka_bootstrap_servers, "-l", "http://127.0.0.1:0")
        cases: list[tuple[tuple[str, ...], int, str]] = [
            (("-b", "127.0.0.1:1", *here[2:], "-o", "kafkastore.init.timeout.ms=300"), 3, "within"),
            ((*here, "-o", "kafkastore.topic=not-compact"), 1, "cleanup.policy=delete, and must"),
            ((*here[:2], "-l", taken_at), 1, f"cannot listen at {taken_at}: A"),
        ]
        for flags, code, words in cases:
            command = [*BARNABAS, "registry", "start", *flags, "--log-level", "error"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert (done.returncode, done.stdout) == (code, "")
            assert done.stderr.startswith("barnabas: ")
            assert done.stderr.count("\n") == 1
            assert words in done.stderr


def test_brokers_that_are_waited_for_are_one_line() -> None:
    for patience_ms in (1_500, 6_000, 24_000):  # a busy machine has not asked once by then
        flags = ["-b", "127.0.0.1:1", "-l", "http://127.0.0.1:0"]
        flags += ["-o", f"kafkastore.init.timeout.ms={patience_ms}"]
        flags += ["-o", "kafkastore.retry.backoff.ms=10"]
        command = [*BARNABAS, "registry", "start", *flags]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if not done.stderr.endswith("no answer\n"):
            break
    waited, failed = done.stderr.splitlines()
    assert waited.endswith("topic _schemas: no broker answers; trying again")
    assert failed.endswith(f"within {patience_ms} ms: no broker answers")


@pytest.mark.parametrize("as_json", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_dev_runs_a_registry_too(as_json: bool, tmp_path: Path) -> None:
    flags = ["--port", "0", "--registry-port", "0", "--directory", str(tmp_path / "data")]
    flags += ["--json"] if as_json else []
    with running("dev", "--registry", *flags) as process:
        line = first_line(process)
        if as_json:
            url = json.loads(line)["schema_registry_url"]
        else:
            assert line.startswith("Ready: bootstrap.servers=127.0.0.1:")
            url = first_line(process).strip().removeprefix("schema.registry.url=")
        kept = RegistryCli(url)
        assert kept.register("a", ORDER) == {"subject": "a", "version": 1, "id": 1}
        assert end(process, signal.SIGINT) == 0
    with running("dev", "--registry", *flags[:6], "--json") as process:
        again = RegistryCli(json.loads(first_line(process))["schema_registry_url"])
        assert again.json("subject", "list") == [{"subject": "a"}]
        assert end(process) == 0


def test_dev_ends_if_its_registry_cannot_start() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        command = [*BARNABAS, "dev", "--registry", "--port", "0", "--registry-port", port]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"barnabas: cannot listen at http://127.0.0.1:{port}" in done.stderr


def section(title: str) -> str:
    """A section of the registry's page."""
    text = (ROOT / "docs" / "registry.md").read_text().partition(f"\n## {title}\n")[2]
    assert text
    return text.partition("\n## ")[0]


def test_the_quick_start_as_printed(tmp_path: Path) -> None:
    """Each block in turn, at other ports."""
    blocks = re.findall(r"```(\w+)\n(.*?)```", section("Quick start"), re.DOTALL)
    assert [kind for kind, _ in blocks] == ["sh", "sh", "sh", "python", "sh"]
    assert blocks[0][1] == "pip install '.[registry]'\nbarnabas dev --registry\n"
    commands, references = re.findall(
        r"```sh\n(.*?)```", section("From the command line"), re.DOTALL
    )
    flags = ["--port", "0", "--registry-port", "0", "--json"]
    with running("dev", "--registry", *flags) as process:
        ready = json.loads(first_line(process))
        url, bootstrap = ready["schema_registry_url"], ready["bootstrap_servers"]

        def here(text: str) -> str:
            return text.replace("http://localhost:8081", url).replace("localhost:9092", bootstrap)

        def run(*command: str) -> str:
            done = subprocess.run(
                command,
                cwd=tmp_path,
                env={
                    **os.environ,
                    "BARNABAS_REGISTRY_URL": url,
                    "BARNABAS_BOOTSTRAP_SERVERS": bootstrap,
                },
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stdout + done.stderr
            return done.stdout

        def script(text: str) -> str:
            call = " ".join(BARNABAS)
            return re.sub(r"^barnabas ", f"{call} ", here(text), flags=re.MULTILINE)

        assert "version 1, id 1" in run("sh", "-e", "-c", script(blocks[1][1]))
        assert run("sh", "-e", "-c", script(blocks[2][1])).endswith('\n{"id": 7}\n')
        (tmp_path / "program.py").write_text(here(blocks[3][1]))
        assert "7" in run(sys.executable, "program.py")
        changed = run("sh", "-e", "-c", script(blocks[4][1]))
        assert "version 2, id 2" in changed
        assert "BACKWARD" in changed
        assert "READWRITE" in run(
            "sh", "-e", "-c", script(commands).replace("delete ", "delete --yes ")
        )
        assert "prices-value: version 1" in run("sh", "-e", "-c", script(references))
        assert end(process) == 0
