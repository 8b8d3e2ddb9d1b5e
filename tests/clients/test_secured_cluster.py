"""`barnabas.Cluster(security=...)`: who gets in, who may what, and what the command line says."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from client_cluster import NODES
from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka.admin import AdminClient

import barnabas
from barnabas.app.testing import Kafka
from barnabas.cli.errors import ExitCode
from support.cli import ClusterCli, run_cli
from support.patience import PATIENCE_S

TIMEOUT_S = PATIENCE_S


@pytest.fixture(scope="module")
def cluster() -> Iterator[barnabas.Cluster]:
    with barnabas.Cluster(NODES, security="scram") as running:
        yield running


def produce(config: dict[str, str], topic: str) -> KafkaError | None:
    """Send one record; what came of it."""
    outcomes: list[Any] = []
    producer = Producer(config)
    producer.produce(topic, b"hello", on_delivery=lambda error, _: outcomes.append(error))
    assert producer.flush(TIMEOUT_S) == 0
    (outcome,) = outcomes
    return outcome  # type: ignore[no-any-return]  # the library's


def edited(cluster: barnabas.Cluster, tmp_path: Path, old: str, new: str) -> str:
    """The admin's properties with another text in them."""
    with open(cluster.properties_file_of("admin")) as file:
        text = file.read()
    assert old in text
    path = tmp_path / "client.properties"
    path.write_text(text.replace(old, new))
    return str(path)


@pytest.mark.parametrize("security", ["plain", "mtls"])
def test_users_do_what_they_may(security: str) -> None:
    with barnabas.Cluster(NODES, security=security) as cluster:
        assert produce(cluster.client_config, "secret") is None
        alice = cluster.client_config_of("alice")
        assert produce(alice, "alice-own") is None
        refused = produce(alice, "secret")
        assert refused is not None
        assert refused.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


def test_with_tls_alone_everybody_may_everything() -> None:
    with barnabas.Cluster(NODES, security="tls") as cluster:
        assert produce(cluster.client_config, "topic") is None
        assert cluster.client_config["security.protocol"] == "SSL"


def test_three_nodes_stop_start_and_grow(tmp_path: Path) -> None:
    with barnabas.Cluster(3, directory=tmp_path, racks=["a", "b"], security="scram") as cluster:
        config = cluster.client_config
        assert produce(config, "kept") is None
        cluster.stop_node(1)
        assert produce({**config, "acks": "1"}, "kept") is None
        cluster.start_node(1)
        assert cluster.add_node(rack="b") == 4
        assert cluster.nodes[4].is_running
        listed = ClusterCli(cluster.bootstrap_servers).json(
            "cluster", "status", "--command-config", cluster.properties_file_of("admin")
        )
        assert [node["node"] for node in listed["nodes"]] == [1, 2, 3, 4]
        add = ("cluster", "add", "--directory", str(tmp_path / "fifth"), "--command-config")
        asked = run_cli(*add, cluster.properties_file_of("admin"))
        assert asked.code == ExitCode.USAGE
        assert "with --like" in asked.err
        like = ("--like", str(tmp_path / "node-1" / "server.properties"))
        assert run_cli(*add, cluster.properties_file_of("admin"), *like).code == 0
        made = tmp_path / "fifth" / "server.properties"
        assert "ScramLoginModule" in made.read_text()
        assert stat.S_IMODE(made.stat().st_mode) == 0o600
    users = (tmp_path / "security" / "users.json").read_text()
    with barnabas.Cluster(3, directory=tmp_path, security="scram") as again:
        assert (tmp_path / "security" / "users.json").read_text() == users
        consumer = Consumer(
            {**again.client_config, "group.id": "g", "auto.offset.reset": "earliest"}
        )
        consumer.subscribe(["kept"])
        assert len(consumer.consume(2, TIMEOUT_S)) == 2
        consumer.close()
    with pytest.raises(ValueError, match="security scram, not mtls"):
        barnabas.Cluster(3, directory=tmp_path, security="mtls").start()


def test_files_with_secrets_belong_to_their_owner(cluster: barnabas.Cluster) -> None:
    place = os.path.dirname(cluster.properties_file_of())
    modes = {
        name: stat.S_IMODE(os.stat(os.path.join(place, name)).st_mode) for name in os.listdir(place)
    }
    assert set(modes.values()) == {0o600}
    assert {"admin.properties", "alice.librdkafka.properties", "alice.spark.conf"} <= set(modes)


def test_unknown_kinds_of_security_are_refused() -> None:
    with pytest.raises(ValueError, match="scram, plain, mtls, tls, not 'kerberos'"):
        barnabas.Cluster(security="kerberos")


def test_the_fixture_s_handle_has_users(cluster: barnabas.Cluster) -> None:
    with Kafka(cluster.bootstrap_servers, "t", cluster.client_config_of) as kafka:
        topic = kafka.topic("orders")
        kafka.produce(topic, [b"a"])
        assert kafka.consume(topic, 1) == [b"a"]
        with kafka.as_user("alice") as alice:
            own = alice.topic("own")
            assert own.startswith("alice-")
            alice.produce(own, [b"b"])
            assert alice.consume(own, 1) == [b"b"]
            with pytest.raises(Exception, match="TOPIC_AUTHORIZATION_FAILED"):
                alice.produce(topic, [b"c"])


@pytest.mark.parametrize(
    ("old", "new", "code", "words"),
    [
        ('password="', 'password="x', ExitCode.REFUSED, "check the name, password"),
        ("ssl.truststore.location=", "client.rack=", ExitCode.REFUSED, "ssl.truststore.location"),
        ("SCRAM-SHA-512", "PLAIN", ExitCode.REFUSED, "its mechanisms are: SCRAM-SHA-512"),
        ("SASL_SSL", "PLAINTEXT", ExitCode.UNREACHABLE, "set security.protocol"),
        ("SASL_SSL", "SASL_PLAINTEXT", ExitCode.UNREACHABLE, "check security.protocol"),
        ("SASL_SSL", "SSL", ExitCode.UNREACHABLE, "check security.protocol"),
        ("SASL_SSL", "KERBEROS", ExitCode.USAGE, "KERBEROS is none of PLAINTEXT, SSL"),
        ("127.0.0.1:", "127.0.0.2:", ExitCode.UNREACHABLE, "no"),
    ],
)
@pytest.mark.parametrize("command", [("topic", "list"), ("cluster", "status")], ids=" ".join)
def test_one_line_says_what_is_wrong(
    cluster: barnabas.Cluster,
    tmp_path: Path,
    command: tuple[str, ...],
    old: str,
    new: str,
    code: int,
    words: str,
) -> None:
    config = edited(cluster, tmp_path, old, new)
    refused = run_cli(*command, "--command-config", config)
    assert (refused.code, words in refused.err) == (code, True), refused.err
    assert refused.err.count("\n") == 1
    assert cluster.client_config["sasl.password"] not in refused.err


def test_addresses_that_are_wrong_for_the_same_reason_are_one_mistake(
    cluster: barnabas.Cluster,
) -> None:
    port = cluster.bootstrap_servers.partition(",")[0].rpartition(":")[2]
    refused = run_cli("cluster", "status", "-b", f"127.0.0.1:{port},localhost:{port}")
    assert refused.code == ExitCode.UNREACHABLE
    assert "set security.protocol" in refused.err, refused.err


def test_a_certificate_of_another_host(cluster: barnabas.Cluster, tmp_path: Path) -> None:
    address = cluster.bootstrap_servers.partition(",")[0]
    port = address.rpartition(":")[2]
    # Not in the certificate, though it leads here on Linux.
    config = edited(cluster, tmp_path, cluster.bootstrap_servers, f"127.0.0.1.:{port}")
    refused = run_cli("topic", "list", "--command-config", config)
    assert refused.code != 0
    shown = run_cli("cert", "show", address, "--json")
    assert shown.code == 0
    assert "127.0.0.1" in shown.json["certificates"][0]["hosts"]
    other = run_cli("cert", "show", address, "--host", "kafka.example")
    assert other.code == ExitCode.PROBLEMS


def test_a_plain_port_is_named_to_a_client_of_tls(tmp_path: Path) -> None:
    with barnabas.Cluster() as plain:
        for protocol in ("SSL", "SASL_SSL"):
            options = ["-X", f"security.protocol={protocol}", "-X", "sasl.mechanism=PLAIN"]
            options += ["-X", "sasl.username=u", "-X", "sasl.password=p"]
            refused = run_cli("topic", "list", "-b", plain.bootstrap_servers, *options)
            assert refused.code != 0
            assert "security.protocol" in refused.err, refused.err


def test_commands_of_every_kind_log_in(
    cluster: barnabas.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BARNABAS_COMMAND_CONFIG", cluster.properties_file_of("alice"))
    cli = ClusterCli(cluster.bootstrap_servers)
    assert cli.json("topic", "create", "alice-cli")[0]["created"]
    assert cli.ok("produce", "alice-cli", stdin=b"hello\n").code == 0
    assert cli.ok("consume", "alice-cli").lines == ["hello"]
    monkeypatch.setenv("BARNABAS_COMMAND_CONFIG", cluster.properties_file_of("admin"))
    for words in (
        ("quorum", "status"),
        ("rebalance", "--dry-run"),
        ("doctor",),
        ("config", "describe", "topic", "alice-cli"),
        ("group", "list"),
    ):
        cli.ok(*words)


def test_the_client_library_agrees(cluster: barnabas.Cluster) -> None:
    admin = AdminClient(dict(cluster.client_config))
    assert admin.list_topics(timeout=TIMEOUT_S).brokers


def test_commands_over_our_own_client_log_in(cluster: barnabas.Cluster, tmp_path: Path) -> None:
    """Those that Kafka's tools have beside confluent-kafka's admin client."""
    cli = ClusterCli(cluster.bootstrap_servers)
    admin = ("--command-config", cluster.properties_file_of("admin"))
    cli.ok("topic", "create", "own-client", *admin)
    cli.ok("perf", "produce", "own-client", "-n", "10", "--payload-monotonic", *admin)
    read = cli.json("perf", "consume", "own-client", "-n", "10", "--group", "reader", *admin)
    assert read["records"] == 10
    properties = cluster.properties_file_of("admin")
    assert cli.json("perf", "consume", "own-client", "-n", "10", "--consumer-config", properties)
    reset = ("share-group", "reset-offsets", "jobs", "-t", "own-client", "--to", "earliest")
    cli.ok(*reset, "--create", "--execute", *admin)
    assert cli.json("share-group", "describe", "jobs", *admin)[0]["offsets"][0]["lag"] == 10
    assert cli.json("streams-group", "list", *admin) == []
    assert {row["group"] for row in cli.json("group", "list", *admin)} >= {"jobs", "reader"}
    cli.ok("group", "delete-offsets", "reader", "--all-topics", "--yes", *admin)
    assert cli.json("log", "dirs", *admin)[0]["error"] is None
    assert cli.json("feature", "describe", *admin)
    assert cli.json("transaction", "list", *admin) == []
    assert cli.json("transaction", "find-hanging", *admin) == []
    alice = ("--command-config", cluster.properties_file_of("alice"))
    for words in (
        ("log", "dirs"),
        ("share-group", "describe", "jobs"),
        ("feature", "disable", "-f", "share.version", "--yes"),
        ("transaction", "describe-producers", "-t", "own-client", "-p", "0"),
        ("perf", "produce", "own-client", "-n", "1", "--payload-monotonic"),
    ):
        refused = cli.run(*words, *alice)
        assert (refused.code, "AUTHORIZATION_FAILED" in refused.err) == (1, True), refused.err
        assert refused.err.count("\n") == 1
    nobody = cli.run("transaction", "list", "--timeout", "3")
    assert nobody.code == ExitCode.UNREACHABLE
