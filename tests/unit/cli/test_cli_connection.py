"""The sources of a client's configuration: flags, environment, files and defaults."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from barnabas.base.errors import ConfigError
from barnabas.cli.client_config import from_java
from barnabas.cli.connection import Connection, connection_options
from barnabas.cli.errors import CliError
from barnabas.cli.login import refusal
from barnabas.kafka.wire import BrokenOffError, NoTlsError, WireError
from support.certificates import Authority


def connect(*arguments: str, **environment: str) -> Connection:
    """The connection that a command would get."""
    seen: list[Connection] = []

    @click.command()
    @connection_options
    def command(connection: Connection, as_json: bool) -> None:
        seen.append(connection)

    variables = {"BARNABAS_BOOTSTRAP_SERVERS": None, **environment}
    result = CliRunner(env=variables).invoke(command, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return seen[0]


def test_bootstrap_servers_come_from_flag_environment_file_default(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text("bootstrap.servers=file:1\nclient.rack=r\n")
    assert connect().bootstrap_servers == "localhost:9092"
    from_file = connect("--client-config", str(path))
    assert (from_file.bootstrap_servers, from_file.config) == ("file:1", {"client.rack": "r"})
    variables = {"BARNABAS_BOOTSTRAP_SERVERS": "env:1", "BARNABAS_CLIENT_CONFIG": str(path)}
    assert connect(**variables).bootstrap_servers == "env:1"
    flagged = connect("-b", "flag:1", "-X", "client.rack=other", **variables)
    assert (flagged.bootstrap_servers, flagged.config) == ("flag:1", {"client.rack": "other"})


def test_flags_win_over_the_file_whichever_names_they_use(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        'sasl.jaas.config=x required username="ann" password="old";\n'
    )
    flags = ("-X", "sasl.mechanisms=SCRAM-SHA-256", "-X", "sasl.password=new")
    assert connect("--client-config", str(path), *flags).config == {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": "ann",
        "sasl.password": "new",
    }


def test_what_a_client_gets() -> None:
    connection = Connection("a:1", {"client.id": "mine"}, 1.0)
    config = connection.client_config(acks="all")
    assert config["bootstrap.servers"] == "a:1"
    assert config["client.id"] == "mine"
    assert config["acks"] == "all"


def test_java_properties_are_translated(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    config = from_java(
        {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": rf'{module} required username="u" password="p\"q";',
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": authority.file,
            "key.serializer": "org.example.Serializer",
        }
    )
    assert config == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "u",
        "sasl.password": 'p"q',
        "ssl.ca.pem": authority.text,
    }


BROKEN = {
    "": "has no username and no password",
    "x": "Login module control flag not specified in JAAS config",
    'x required username="secret;': "A quote is not closed in JAAS config",
}


@pytest.mark.parametrize("text", BROKEN)
def test_a_broken_jaas_line_is_refused(text: str) -> None:
    login = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.jaas.config": text}
    with pytest.raises(ConfigError, match=f"^sasl.jaas.config: {BROKEN[text]}") as caught:
        from_java(login)
    assert "secret" not in str(caught.value)


def test_a_pem_store_is_both_files(tmp_path: Path) -> None:
    own = Authority(tmp_path).issue("alice")
    config = from_java(
        {
            "security.protocol": "SSL",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": own,
            "ssl.key.password": "x",
            "ssl.endpoint.identification.algorithm": "",
            "ssl.enabled.protocols": "TLSv1.3",
        }
    )
    assert config == {
        "security.protocol": "SSL",
        "ssl.certificate.location": own,
        "ssl.key.location": own,
        "ssl.key.password": "x",
        "ssl.endpoint.identification.algorithm": "none",
    }


def test_a_delegation_token_is_not_for_librdkafka() -> None:
    config = from_java(
        {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.jaas.config": 'x required username="id" password="mac" tokenauth="true";',
        }
    )
    with pytest.raises(CliError, match="delegation token"):
        Connection("a:1", config, 1.0).client_config()


def test_a_file_for_tls_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"ssl.ca.location: .*nothing.pem: No such file"):
        connect("-X", f"ssl.ca.location={tmp_path}/nothing.pem")


def test_passwords_are_not_shown() -> None:
    assert "hidden" not in repr(Connection("a:1", {"sasl.password": "hidden"}, 1.0))


@pytest.mark.parametrize("name", ["BARNABAS_COMMAND_CONFIG", "BARNABAS_CLIENT_CONFIG"])
def test_the_environment_names_the_file(tmp_path: Path, name: str) -> None:
    path = tmp_path / "client.properties"
    path.write_text("client.rack=r\n")
    assert connect(**{name: str(path)}).config == {"client.rack": "r"}
    assert connect("--command-config", str(path)).config == {"client.rack": "r"}


@pytest.mark.parametrize(
    ("error", "protocol", "words"),
    [
        (
            NoTlsError("b:1 broke off", "it requires a client certificate"),
            "SSL",
            "b:1: it requires a client certificate; set ssl.keystore.type=PEM",
        ),
        (
            BrokenOffError("b:1 broke off"),
            "SASL_PLAINTEXT",
            "b:1: it closed the connection; its port may want another: check security.protocol",
        ),
    ],
)
def test_what_a_lost_connection_means(error: WireError, protocol: str, words: str) -> None:
    told = refusal(error, "b:1", {"security.protocol": protocol})
    assert told is not None
    assert words in told.line()
