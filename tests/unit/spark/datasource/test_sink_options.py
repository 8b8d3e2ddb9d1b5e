"""Options of the sink: what Spark users write becomes librdkafka's settings and our access."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructType,
    TimestampType,
)

from barnabas.kafka.wire import Access
from barnabas.spark.datasource.options import OptionError, read_options
from barnabas.spark.datasource.sink import SchemaError, check_schema
from support.certificates import Authority

SERVERS = {"kafka.bootstrap.servers": "a:9092, [::1]:9093"}
JAAS = 'org.apache.kafka.common.security.{} required username="ann" password=\'p"w\' other="x";'


def test_defaults() -> None:
    options = read_options({**SERVERS, "Topic": "t", "checkpointLocation": "/c"})
    assert options.topic == "t"
    assert options.access == Access("a:9092, [::1]:9093")
    assert options.access.addresses() == [("a", 9092), ("::1", 9093)]
    assert options.producer["transaction.timeout.ms"] == 900_000
    assert not options.skips_lost


def test_settings_of_the_producer() -> None:
    options = read_options(
        {
            **SERVERS,
            "kafka.compression.type": "zstd",
            "kafka.max.request.size": "2000000",
            "kafka.acks": "all",
            "onLostTransaction": "skip",
            "decisionTopic": "d",
        }
    )
    assert options.producer["compression.type"] == "zstd"
    assert options.producer["message.max.bytes"] == "2000000"
    assert "compression.type" not in options.connection
    assert options.skips_lost
    assert options.decision_topic == "d"


@pytest.mark.parametrize(
    ("given", "user", "password"),
    [
        ({"kafka.sasl.username": "ann", "kafka.sasl.password": "pw"}, "ann", "pw"),
        ({"kafka.sasl.jaas.config": JAAS.format("plain.PlainLoginModule")}, "ann", 'p"w'),
        ({"kafka.sasl.jaas.config": JAAS.format("scram.ScramLoginModule")}, "ann", 'p"w'),
    ],
)
def test_sasl_and_tls(tmp_path: Path, given: dict[str, str], user: str, password: str) -> None:
    authority = Authority(tmp_path)
    options = read_options(
        {
            **SERVERS,
            "kafka.security.protocol": "sasl_ssl",
            "kafka.sasl.mechanism": "SCRAM-SHA-512",
            "kafka.ssl.truststore.type": "PEM",
            "kafka.ssl.truststore.location": authority.file,
            "kafka.ssl.endpoint.identification.algorithm": "",
            **given,
        }
    )
    assert options.access == Access(
        SERVERS["kafka.bootstrap.servers"],
        has_tls=True,
        ca_pem=authority.text,
        checks_host=False,
        mechanism="SCRAM-SHA-512",
        user=user,
        password=password,
    )
    assert options.connection["security.protocol"] == "SASL_SSL"
    assert options.connection["ssl.ca.pem"] == authority.text
    assert options.connection["ssl.endpoint.identification.algorithm"] == "none"
    assert options.connection["sasl.password"] == password


REFUSED = {
    "no servers": ({"topic": "t"}, r"kafka\.bootstrap\.servers is missing"),
    "unknown": ({**SERVERS, "topics": "t"}, "unknown option topics"),
    "unknown setting": ({**SERVERS, "kafka.key.serializer": "x"}, r"kafka\.key\.serializer is not"),
    "own id": ({**SERVERS, "kafka.transactional.id": "x"}, r"kafka\.transactional\.id is not"),
    "acks": ({**SERVERS, "kafka.acks": "1"}, r"kafka\.acks is all"),
    "idempotence": ({**SERVERS, "kafka.enable.idempotence": "false"}, "is true for exactly once"),
    "no port": (
        {"kafka.bootstrap.servers": "a:9092,b"},
        r"kafka\.bootstrap\.servers: 'b' is not host:port",
    ),
    "lost": ({**SERVERS, "onLostTransaction": "ignore"}, "fail or skip, not ignore"),
    "protocol": (
        {**SERVERS, "kafka.security.protocol": "TLS"},
        "TLS is none of PLAINTEXT, SSL",
    ),
    "plaintext with TLS": (
        {**SERVERS, "kafka.ssl.ca.location": "/ca"},
        r"kafka\.ssl\.ca\.location needs kafka\.security\.protocol",
    ),
    "key store": (
        {
            **SERVERS,
            "kafka.security.protocol": "SSL",
            "kafka.ssl.truststore.location": "/trust.jks",
        },
        r"kafka\.ssl\.truststore\.location: cannot be read",
    ),
    "mechanism": (
        {
            **SERVERS,
            "kafka.security.protocol": "SASL_SSL",
            "kafka.sasl.mechanism": "GSSAPI",
        },
        "GSSAPI is not supported; set one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512",
    ),
    "no password": (
        {
            **SERVERS,
            "kafka.security.protocol": "SASL_SSL",
            "kafka.sasl.mechanism": "PLAIN",
            "kafka.sasl.username": "ann",
        },
        "has no password; it is written",
    ),
    "another login": (
        {
            **SERVERS,
            "kafka.security.protocol": "SASL_SSL",
            "kafka.sasl.mechanism": "PLAIN",
            "kafka.sasl.jaas.config": "com.sun.security.auth.module.Krb5LoginModule required;",
        },
        r"kafka\.sasl\.jaas\.config: has no username and no password",
    ),
}


def test_no_secret_is_shown(tmp_path: Path) -> None:
    own = Authority(tmp_path).issue("ann", password="secret")
    options = read_options(
        {
            **SERVERS,
            "kafka.security.protocol": "SASL_SSL",
            "kafka.ssl.keystore.location": own,
            "kafka.ssl.keystore.type": "PEM",
            "kafka.ssl.key.password": "secret",
            "kafka.sasl.mechanism": "PLAIN",
            "kafka.sasl.username": "ann",
            "kafka.sasl.password": "secret",
        }
    )
    assert options.access.own is not None
    assert (options.access.password, options.access.own.password) == ("secret", "secret")
    assert "secret" not in repr(options)


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    given, message = REFUSED[name]
    with pytest.raises(OptionError, match=message):
        read_options(given)


HEADERS = StructType().add("key", StringType()).add("value", BinaryType())
TYPES: dict[str, DataType] = {
    "string": StringType(),
    "binary": BinaryType(),
    "int": IntegerType(),
    "long": LongType(),
    "timestamp": TimestampType(),
    "double": DoubleType(),
    "headers": ArrayType(HEADERS),
    "keys": ArrayType(StructType().add("key", StringType())),
}


def schema(*columns: str) -> StructType:
    """A schema of `name type` texts."""
    made = StructType()
    for column in columns:
        name, _, kind = column.partition(" ")
        made = made.add(name, TYPES[kind])
    return made


def test_columns() -> None:
    check_schema(
        schema("headers headers", "key string", "value binary", "partition int"), topic="t"
    )
    check_schema(schema("value string", "topic string", "timestamp timestamp"), None)
    check_schema(schema("value string", "topic string", "timestamp long"), None)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["key string"], "no column value"),
        (["value string", "id int"], "unknown column id"),
        (["value double"], "column value is string or binary, not double"),
        (["value string", "partition long"], "column partition is integer, not bigint"),
        (["value string", "headers keys"], "column headers is array"),
    ],
)
def test_columns_refused(columns: list[str], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        check_schema(schema(*columns), "t")


def test_a_topic_must_come_from_somewhere() -> None:
    with pytest.raises(SchemaError, match="set the option topic"):
        check_schema(schema("value string"), None)
