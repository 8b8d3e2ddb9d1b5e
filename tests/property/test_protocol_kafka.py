"""Our bytes against Apache Kafka's own classes, for every version of every message.

Kafka decodes what we encoded and must encode it to the same bytes. Needs `java` and Kafka's jars
in `.cache/kafka-*/libs`; where they are absent the tests are skipped, and kio (which has no
records) is the only judge.
"""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from protocol_values import all_messages, label, struct_values, versions

from barnabas.protocol.codec import encode
from barnabas.protocol.schema import Message
from support.apache_kafka import java_with_kafka, needs_apache_kafka
from support.effort import examples

pytestmark = needs_apache_kafka

Echo = Callable[[str, int, bytes], bytes]


@pytest.fixture(scope="module")
def echo() -> Iterator[Echo]:
    """A Kafka that decodes and encodes."""
    command = java_with_kafka(str(Path(__file__).with_name("KafkaEcho.java")))
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        stdin, stdout = process.stdin, process.stdout

        def ask(name: str, version: int, data: bytes) -> bytes:
            stdin.write(f"{name} {version} {data.hex()}\n")
            stdin.flush()
            answer = stdout.readline().rstrip("\n")
            assert not answer.startswith("error"), answer
            return bytes.fromhex(answer)

        yield ask
        stdin.close()


@pytest.mark.parametrize("cls", all_messages(), ids=label)
def test_bytes_equal(cls: type[Message], echo: Echo) -> None:
    for version in versions(cls):
        assert_bytes_equal(cls, version, echo)


@settings(
    max_examples=examples(2),
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data())
def assert_bytes_equal(cls: Any, version: int, echo: Echo, data: st.DataObject) -> None:
    message = data.draw(struct_values(cls, version))
    if cls.SCHEMA.flexible.covers(version):
        message.unknown_tags = data.draw(st.sampled_from([None, [(1000, b""), (2000, b"later")]]))
    encoded = encode(message, version)
    assert echo(cls.__name__, version, encoded) == encoded
