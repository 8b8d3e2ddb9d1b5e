"""Spark's own Kafka connector, a client in Java, logs in by every kind of login there is.

Its user may write, read and see one topic, and nothing else.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AclOperation, ResourceType
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from support.cluster_processes import Barnabas
from support.secured_node import MECHANISMS, SecuredNode, running
from support.spark import shared_session

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(180),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]
MAY = (AclOperation.WRITE, AclOperation.READ, AclOperation.DESCRIBE)
FAILURES = (PySparkException, Py4JJavaError)
CERTIFICATE = "spark-certificate"


@pytest.fixture(autouse=True)
def sockets_of_collect() -> Iterator[None]:
    """PySpark leaves the sockets of collect() to the garbage collector: it runs here."""
    yield
    gc.collect()


@pytest.fixture(scope="module")
def spark() -> SparkSession:
    return shared_session()


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredNode]:
    directory = tmp_path_factory.mktemp("spark-secured")
    with running(SecuredNode(directory, Barnabas(), ("admin", "alice"))) as node:
        node.add_users("alice")
        yield node


def topic_of(node: SecuredNode, name: str, *users: str) -> str:
    node.create_topic(name, 2)
    for user in users:
        node.allow(user, ResourceType.TOPIC, name, *MAY)
    return name


def options(settings: dict[str, str], servers: str) -> dict[str, str]:
    """A client's settings as the connector takes them."""
    return {f"kafka.{key}": value for key, value in settings.items()} | {
        "kafka.bootstrap.servers": servers
    }


def records(spark: SparkSession, name: str) -> DataFrame:
    rows = [(f"{name}-{number}", str(number)) for number in range(100)]
    return spark.createDataFrame(rows, "key string, value string").repartition(2)


def write_and_read(spark: SparkSession, topic: str, client: dict[str, str]) -> None:
    """A hundred records go out and come back."""
    there = {**client, "topic": topic}
    records(spark, topic).write.format("kafka").options(**there).save()
    back = {**client, "subscribe": topic, "startingOffsets": "earliest"}
    found = spark.read.format("kafka").options(**back).load()
    values = {row[0] for row in found.selectExpr("cast(value as string)").collect()}
    assert values == {str(number) for number in range(100)}


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_it_logs_in(spark: SparkSession, node: SecuredNode, mechanism: str) -> None:
    topic = topic_of(node, f"by-{mechanism}", "alice")
    write_and_read(spark, topic, options(node.java("alice", mechanism), node.servers()))


def test_it_shows_a_certificate(spark: SparkSession, node: SecuredNode) -> None:
    topic = topic_of(node, "by-certificate", f"CN={CERTIFICATE}")
    settings = {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": node.authority.file,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": node.authority.issue(CERTIFICATE),
    }
    write_and_read(spark, topic, options(settings, node.servers("MUTUAL")))


def test_a_query_copies_a_stream(spark: SparkSession, node: SecuredNode, tmp_path: Path) -> None:
    source = topic_of(node, "stream-in", "alice")
    target = topic_of(node, "stream-out", "alice")
    client = options(node.java("alice", "SCRAM-SHA-512"), node.servers())
    there = {**client, "topic": source}
    records(spark, source).write.format("kafka").options(**there).save()
    stream = spark.readStream.format("kafka")
    stream = stream.options(**client, subscribe=source, startingOffsets="earliest")
    query = stream.load().select("key", "value").writeStream.format("kafka")
    query = query.options(**client, topic=target, checkpointLocation=str(tmp_path))
    query.trigger(availableNow=True).start().awaitTermination(120)
    back = {**client, "subscribe": target, "startingOffsets": "earliest"}
    assert spark.read.format("kafka").options(**back).load().count() == 100


@pytest.mark.parametrize("topic", ["there", "not-there"])
def test_it_is_told_what_it_may_not(spark: SparkSession, node: SecuredNode, topic: str) -> None:
    """The error does not reveal whether the topic exists."""
    if topic == "there":
        topic_of(node, topic)
    client = options(node.java("alice"), node.servers())
    reader = spark.read.format("kafka").options(**client, subscribe=topic)
    with pytest.raises(FAILURES, match="TopicAuthorizationException"):
        reader.load().count()
    writer = records(spark, topic).write.format("kafka").options(**client, topic=topic)
    with pytest.raises(FAILURES, match="Not authorized to access topics"):
        writer.save()


def test_a_wrong_password_ends_it(spark: SparkSession, node: SecuredNode) -> None:
    wrong = options(node.java("alice", "SCRAM-SHA-256", secret="guessed"), node.servers())
    reader = spark.read.format("kafka").options(**wrong, subscribe="orders")
    with pytest.raises(FAILURES, match="SaslAuthenticationException"):
        reader.load().count()
    assert "guessed" not in node.log()


def test_it_gets_a_delegation_token_and_logs_in_by_it(
    spark: SparkSession, node: SecuredNode
) -> None:
    """Spark asks for tokens by itself only under Kerberos: here it is called upon to.

    What it has got then counts for every query on this node, which is why this test is the last.
    """
    topic = topic_of(node, "by-token", "alice")
    gateway = spark.sparkContext._jvm
    assert gateway is not None
    conf = gateway.org.apache.spark.SparkEnv.get().conf()
    cluster = "spark.kafka.clusters.secured"
    settings = {
        "auth.bootstrap.servers": node.servers(),
        "target.bootstrap.servers.regex": re.escape(node.servers()),
        "security.protocol": "SASL_SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": node.authority.file,
        "sasl.token.mechanism": "SCRAM-SHA-512",
    }
    for key, value in settings.items():
        conf.set(f"{cluster}.{key}", value)
    for key, value in node.java("alice").items():
        conf.set(f"{cluster}.kafka.{key}", value)
    package = gateway.org.apache.spark.kafka010
    cluster_conf = package.KafkaTokenSparkConf.getClusterConfig(conf, "secured")
    token = package.KafkaTokenUtil.obtainToken(conf, cluster_conf)._1()
    user = gateway.org.apache.hadoop.security.UserGroupInformation.getCurrentUser()
    assert user.addToken(token.getService(), token)
    only_servers = {"kafka.bootstrap.servers": node.servers()}
    trust = {key: value for key, value in node.java("alice").items() if key.startswith("ssl.")}
    client = only_servers | {f"kafka.{key}": value for key, value in trust.items()}
    write_and_read(spark, topic, client)
