"""The exactly-once sink over TLS and SASL, with Apache Kafka's brokers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow
import pytest
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from barnabas.app.testing import Kafka
from barnabas.kafka.wire import AccessError, Brokers
from barnabas.spark.datasource.committer import Committer, task_prefix
from barnabas.spark.datasource.options import read_options
from barnabas.spark.datasource.task import IdPool, TaskPlace, close_connections, write_rows
from support import apache_kafka
from support.certificates import Authority
from support.cluster_processes import PROPERTIES, ClusterProcesses
from support.ports import free_port

pytestmark = pytest.mark.slow
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
LOGINS = {
    "TLS": {"kafka.security.protocol": "SSL"},
    "PLAIN": {
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": f'{PLAIN} username="ann" password="secret";',
    },
    "SCRAM": {
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "SCRAM-SHA-256",
        "kafka.sasl.username": "bob",
        "kafka.sasl.password": "hidden",
    },
}


@dataclass
class Secure:
    """A node with a plain listener, one with TLS and one with SASL over TLS."""

    plain: str
    by_protocol: dict[str, str]
    ca: str

    def options(self, login: dict[str, str]) -> dict[str, str]:
        return {
            "kafka.bootstrap.servers": self.by_protocol[login["kafka.security.protocol"]],
            "kafka.ssl.truststore.type": "PEM",
            "kafka.ssl.truststore.location": self.ca,
            **login,
        }


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secure]:
    if not apache_kafka.AVAILABLE:
        pytest.skip(apache_kafka.MISSING)
    directory = tmp_path_factory.mktemp("secure")
    authority = Authority(directory)
    plain, controller, tls, sasl = (free_port() for _ in range(4))
    overrides = {
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listeners": ",".join(
            f"{name}://127.0.0.1:{port}"
            for name, port in (
                ("PLAINTEXT", plain),
                ("CONTROLLER", controller),
                ("SSL", tls),
                ("SASL_SSL", sasl),
            )
        ),
        "listener.security.protocol.map": (
            f"{PROPERTIES['listener.security.protocol.map']},SSL:SSL,SASL_SSL:SASL_SSL"
        ),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": authority.issue("broker"),
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": f'{PLAIN} user_ann="secret";',
        "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config": f"{SCRAM};",
    }
    cluster = ClusterProcesses(directory, 1, overrides, program=apache_kafka.ApacheKafka())
    node = cluster.nodes[1]
    node.port, node.controller_port = plain, controller
    with cluster:
        credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
        bob = UserScramCredentialUpsertion("bob", credential, b"hidden")
        admin = AdminClient({"bootstrap.servers": node.bootstrap_servers})
        admin.alter_user_scram_credentials([bob])["bob"].result(60)
        by_protocol = {"SSL": f"127.0.0.1:{tls}", "SASL_SSL": f"127.0.0.1:{sasl}"}
        yield Secure(node.bootstrap_servers, by_protocol, authority.file)


@pytest.mark.parametrize("login", LOGINS)
def test_it_writes(secure: Secure, login: str) -> None:
    with Kafka(secure.plain, f"sink-{login}") as kafka:
        topic, sink = kafka.topic("out"), kafka.name("sink")
        options = read_options({**secure.options(LOGINS[login]), "topic": topic})
        rows = pyarrow.record_batch({"value": ["a", "b"]})
        place = TaskPlace(task_prefix(sink), 0, 0)
        (prepared,) = write_rows(options, place, iter([rows]), IdPool())
        committer = Committer(options, sink)
        committer.commit(0, [prepared], was_retried=True)
        committer.close()
        close_connections()
        assert set(kafka.consume(topic, 2)) == {b"a", b"b"}


WRONG = {"kafka.sasl.jaas.config": f'{PLAIN} username="ann" password="x";'}
REFUSED = {
    "no trust": ({"kafka.security.protocol": "SSL"}, False, "is not trusted"),
    "PLAIN": (LOGINS["PLAIN"] | WRONG, True, "login to .* failed"),
    "SCRAM": (LOGINS["SCRAM"] | {"kafka.sasl.password": "x"}, True, "login to .* failed"),
    "mechanism": (
        LOGINS["SCRAM"] | {"kafka.sasl.mechanism": "SCRAM-SHA-512"},
        True,
        "refused the login by SCRAM-SHA-512; its mechanisms are",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_who_is_not_let_in_is_told(secure: Secure, name: str) -> None:
    login, is_trusting, message = REFUSED[name]
    given = secure.options(login)
    if not is_trusting:
        del given["kafka.ssl.truststore.location"]
    brokers = Brokers(read_options(given).access)
    with pytest.raises(AccessError, match=message):
        brokers.any()
    brokers.close()
