"""Services and pipelines log in with the file of --command-config, checked before Spark starts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import barnabas
from barnabas.spark.session import SparkStartError
from support.cli import run_cli

PIPELINE = """
from barnabas.streams import Pipeline, stream

pipeline = Pipeline("energy", stream("charging", schema="kwh DOUBLE").to("out"))
"""
STARTED = "here Spark starts"


@pytest.fixture(scope="module")
def cluster() -> Iterator[barnabas.Cluster]:
    with barnabas.Cluster(security="scram") as made:
        yield made


@pytest.fixture
def command(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    def start(*_: Any, **__: Any) -> None:
        raise SparkStartError(STARTED)

    def run_server(config: Any, *_: Any) -> int:
        assert config.kafka["sasl.username"] == "alice"
        assert config.java_kafka["security.protocol"] == "SASL_SSL"
        assert not config.listeners[0].is_tls
        raise SparkStartError(STARTED)

    monkeypatch.setattr("barnabas.spark.session.start_session", start)
    monkeypatch.setattr("barnabas.sql.server.run.run_server", run_server)
    (tmp_path / "energy.py").write_text(PIPELINE)
    return [str(tmp_path / word) if word.endswith(".py") else word for word in request.param]


COMMANDS = pytest.mark.parametrize(
    "command", [["pipeline", "run", "energy.py"], ["sql", "server"]], indirect=True, ids=" ".join
)


@COMMANDS
@pytest.mark.parametrize("with_bootstrap", [True, False])
def test_the_file_says_how_to_log_in(
    cluster: barnabas.Cluster, command: list[str], with_bootstrap: bool, tmp_path: Path
) -> None:
    file = tmp_path / "client.properties"
    text = Path(cluster.properties_file_of("alice")).read_text()
    where = ["-b", cluster.bootstrap_servers] if with_bootstrap else []
    file.write_text(text if where else f"{text}\nbootstrap.servers={cluster.bootstrap_servers}\n")
    try:
        said = run_cli(*command, *where, "--command-config", str(file)).err
    except SparkStartError as error:
        said = str(error)
    assert STARTED in said


@COMMANDS
def test_a_login_that_is_refused(
    cluster: barnabas.Cluster, command: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "client.properties"
    text = Path(cluster.properties_file_of("alice")).read_text()
    file.write_text(text.replace('password="', 'password="not'))
    for how, code, words in (
        (["--command-config", str(file)], 1, "check the name, password"),
        ([], 3, "set security.protocol"),
    ):
        result = run_cli(*command, "-b", cluster.bootstrap_servers, *how)
        assert (result.code, result.out) == (code, b""), result.err
        assert words in result.err
        assert result.err.splitlines()[-1].startswith("barnabas: ")
