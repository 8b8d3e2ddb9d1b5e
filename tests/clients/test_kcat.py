"""kcat, librdkafka's command line.

kcat cannot set a record's time or administer topics, so those steps are confluent-kafka's; all
reading, group consumption and time look-up is kcat's own.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import Any

import pytest
from client_matrix import ClientMatrix, Message
from test_confluent_kafka import ConfluentClient

from support import client_logins
from support.patience import PATIENCE_S

pytestmark = pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed")


class KcatClient(ConfluentClient):
    """kcat as a process per step."""

    capabilities = frozenset(
        [
            "acks-all",
            "codec-gzip",
            "codec-lz4",
            "codec-none",
            "codec-snappy",
            "codec-zstd",
            "groups",
            "times",
        ]
    )

    def kcat(self, *arguments: str, stdin: bytes = b"") -> str:
        """Run kcat to its end; returns what it printed."""
        done = subprocess.run(
            ["kcat", *client_logins.kcat(self.base["bootstrap.servers"]), *arguments],
            input=stdin,
            capture_output=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()

    def _messages(self, output: str) -> list[Message]:
        return [self._message(json.loads(line)) for line in output.splitlines()]

    def _message(self, record: dict[str, Any]) -> Message:
        headers = record.get("headers", [])
        return Message(
            value=None if record["payload"] is None else record["payload"].encode(),
            key=None if record["key"] is None else record["key"].encode(),
            headers=tuple(
                (name, value.encode())
                for name, value in zip(headers[::2], headers[1::2], strict=True)
            ),
            timestamp_ms=record["ts"],
            partition=record["partition"],
            offset=record["offset"],
        )

    def read(self, topic: str, partition: int, offset: int, count: int) -> list[Message]:
        return self._messages(
            self.kcat(
                *("-C", "-q", "-J", "-t", topic, "-p", str(partition)),
                *("-o", str(offset), "-c", str(count)),
            )
        )

    def read_in_group(self, topic: str, group: str, count: int) -> list[Message]:
        settings = ("-X", "auto.offset.reset=earliest")
        return self._messages(
            self.kcat("-q", "-J", "-c", str(count), *settings, "-G", group, topic)
        )

    def offset_for_time(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        output = self.kcat("-Q", "-t", f"{topic}:{partition}:{timestamp_ms}")
        offset = int(output.split("offset")[1])
        return None if offset < 0 else offset


class TestKcat(ClientMatrix):
    client_class = KcatClient

    def test_what_kcat_sends_kcat_reads(self, client: KcatClient, topic: str) -> None:
        self.create_topic(client, topic, 1, {})
        client.kcat(
            *("-P", "-t", topic, "-p", "0", "-K", ":", "-H", "h=1", "-z", "lz4"),
            stdin=b"k1:v1\nk2:v2\n",
        )
        received = client.read(topic, 0, 0, 2)
        assert [(m.key, m.value, m.headers) for m in received] == [
            (b"k1", b"v1", (("h", b"1"),)),
            (b"k2", b"v2", (("h", b"1"),)),
        ]

    def test_the_listing_names_broker_and_topic(self, client: KcatClient, topic: str) -> None:
        self.create_topic(client, topic, 3, {})
        listing = json.loads(client.kcat("-L", "-J", "-t", topic))
        brokers = sorted(broker["name"] for broker in listing["brokers"])
        assert brokers == sorted(client.base["bootstrap.servers"].split(","))
        (described,) = listing["topics"]
        assert len(described["partitions"]) == 3
