"""The SQL server on a Kafka that wants TLS, a certificate and a password of all its clients."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.apache_kafka import ApacheKafka, needs_apache_kafka
from support.certificates import Authority
from support.node_process import wait_until
from support.ports import free_port
from support.sql_server_process import SqlServer, running

pytestmark = [
    pytest.mark.slow,
    needs_apache_kafka,
]
CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"
BROKER = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listeners=SASL_SSL://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=SASL_SSL://127.0.0.1:{port}
listener.security.protocol.map=SASL_SSL:SASL_SSL,CONTROLLER:PLAINTEXT
inter.broker.listener.name=SASL_SSL
sasl.enabled.mechanisms=PLAIN
sasl.mechanism.inter.broker.protocol=PLAIN
listener.name.sasl_ssl.plain.sasl.jaas.config={module} \\
  username="ann" password="words" user_ann="words";
ssl.client.auth=required
ssl.keystore.type=PEM
ssl.keystore.location={keystore}
ssl.truststore.type=PEM
ssl.truststore.location={truststore}
log.dirs={directory}
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
"""


@dataclass
class SecuredKafka:
    bootstrap_servers: str
    settings: list[str]


@pytest.fixture(scope="module")
def kafka_with_login(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    directory = tmp_path_factory.mktemp("kafka")
    authority = Authority(directory)
    port, controller = free_port(), free_port()
    properties = directory / "server.properties"
    properties.write_text(
        BROKER.format(
            port=port,
            controller=controller,
            module=MODULE,
            keystore=authority.issue("broker"),
            truststore=authority.file,
            directory=directory / "logs",
        )
    )
    program = ApacheKafka()
    subprocess.run(program.format(properties, CLUSTER_ID), check=True, capture_output=True)
    with (directory / "kafka.log").open("w") as log:
        process = subprocess.Popen(program.start(properties), stdout=log, stderr=log)
    try:
        wait_until(lambda: listens(port), "the broker's start")
        yield SecuredKafka(
            f"127.0.0.1:{port}",
            [
                "security.protocol=SASL_SSL",
                "sasl.mechanism=PLAIN",
                f'sasl.jaas.config={MODULE} username="ann" password="words";',
                f"ssl.truststore.location={authority.file}",
                f"ssl.keystore.location={authority.issue('sql')}",
            ],
        )
    finally:
        process.terminate()
        process.wait()


def listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except ConnectionRefusedError:
        return False
    return True


STORY = """
CREATE STREAM charges (station STRING KEY, kwh BIGINT)
  WITH (kafka_topic='charges-{0}', value_format='JSON', partitions=2);
CREATE TABLE energy WITH (kafka_topic='energy-{0}') AS
  SELECT station, SUM(kwh) AS total FROM charges GROUP BY station EMIT CHANGES;
INSERT INTO charges VALUES ('a', 1);
INSERT INTO charges VALUES ('b', 2);
INSERT INTO charges VALUES ('a', 3);
"""


def run_story(server: SqlServer) -> None:
    server.ksql(STORY.format(server.suffix))
    server.wait_for_rows("SELECT * FROM energy;", [["a", 4], ["b", 2]])
    shown = server.client.post("/ksql", json={"ksql": "SHOW PROPERTIES;"}).text
    assert "sasl.jaas.config" in shown
    assert "words" not in shown


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_spark_logs_in(kafka_with_login: SecuredKafka, guarantee: str, tmp_path: Path) -> None:
    settings = [
        *kafka_with_login.settings,
        f"ksql.streams.state.dir={tmp_path}",
        f"ksql.streams.processing.guarantee={guarantee}",
        "barnabas.sql.spark.master=local[1]",
    ]
    with running(kafka_with_login.bootstrap_servers, settings) as server:
        run_story(server)


def test_the_servers_own_clients_log_in(kafka_with_login: SecuredKafka) -> None:
    settings = ["barnabas.sql.runner=local", *kafka_with_login.settings]
    with running(kafka_with_login.bootstrap_servers, settings) as server:
        run_story(server)
