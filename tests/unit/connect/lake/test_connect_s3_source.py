"""S3's source: objects that change while they wait to be read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from barnabas.connect.connectors.base import TaskContext
from barnabas.connect.connectors.s3.bucket import Bucket
from barnabas.connect.connectors.s3.connectors import S3Source
from barnabas.connect.connectors.storage.store import StoredFile
from support.connect.s3 import S3Server, s3_server


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with s3_server() as server:
        server.make_bucket("changing")
        yield server


class Offsets:
    """Those of one source, as they are stored."""

    def __init__(self) -> None:
        self.found: dict[str, tuple[Any, Any]] = {}

    def store(self, pairs: Any) -> None:
        self.found |= {str(partition): (partition, offset) for partition, offset in pairs}

    def offset(self, partition: Any) -> Any:
        return self.found.get(str(partition), (None, None))[1]

    def all(self) -> list[tuple[Any, Any]]:
        return list(self.found.values())


@pytest.mark.parametrize("are_tags_alike", [True, False])
def test_an_object_that_is_replaced_before_it_is_read_is_read_once(
    server: S3Server, monkeypatch: pytest.MonkeyPatch, are_tags_alike: bool
) -> None:
    if not are_tags_alike:  # some servers quote them in one answer alone
        real = Bucket.list

        def listed(self: Bucket, prefix: str) -> Iterator[StoredFile]:
            return (replace(one, version=one.version.strip('"')) for one in real(self, prefix))

        monkeypatch.setattr(Bucket, "list", listed)
    for key in server.keys("changing"):
        server.client.delete_object(Bucket="changing", Key=key)
    offsets = Offsets()
    settings = {
        "mode": "GENERIC",
        "topics.dir": "in",
        "topic.regex.list": r"rows:in/.*\.json",
        "format.class": "JsonFormat",
        "s3.poll.interval.ms": "1",
        **server.settings("changing"),
    }
    reader = S3Source().reader(TaskContext("lake", 0, {**settings, "task.id": "0"}, offsets))

    def put(name: str, *ids: int) -> None:
        lines = "".join(f'{{"id": {one}}}\n' for one in ids)
        server.write("changing", f"in/{name}.json", lines.encode())

    def read(before: Any = None) -> list[int]:
        found: list[int] = []
        start = reader.initialOffset()
        while (end := reader.latestOffset()) == start:
            pass
        if before is not None:
            before()
        for split in reader.partitions(start, end):
            found += [record.value["id"] for record in reader.read(split)]
        offsets.store(reader.offsets(end))
        reader.commit(end)
        return sorted(found)

    put("a", 1)
    put("b", 2)
    assert read(lambda: put("a", 3, 4)) == [2]
    assert read() == [3, 4]
    put("c", 5)
    assert read() == [5]
    reader.stop()
