"""Two tasks that believe that a partition is theirs end files by the clock: each record once."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import pytest

from barnabas.connect.connectors.base import SinkRange, TaskContext
from barnabas.connect.connectors.s3 import bucket as s3_bucket
from barnabas.connect.connectors.s3.bucket import Bucket
from barnabas.connect.connectors.s3.connectors import S3_SINK, S3Sink, make_bucket
from barnabas.connect.connectors.storage.sink import FileSettings, FileSinkWriter
from barnabas.connect.connectors.storage.store import (
    Claim,
    FileStore,
    StoredFile,
    TakenError,
    Upload,
    of_file,
    rules_of,
)
from barnabas.connect.record import SinkRecord
from barnabas.schemas.data import builder
from barnabas.schemas.data.errors import ConnectError, RetriableError
from barnabas.schemas.data.schema import Struct
from support.connect.s3 import S3Server, s3_server

ROW = builder.struct_of({"id": builder.INT64, "city": builder.STRING})
SEEDS = range(150)
SETTINGS = {
    "s3.bucket.name": "events",
    "flush.size": "9",
    "format.class": "JsonFormat",
    "partitioner.class": "FieldPartitioner",
    "partition.field.name": "city",
    "rotate.schedule.interval.ms": "10",
    "timezone": "UTC",
    "filename.offset.zero.pad.width": "4",
}


class CrashError(Exception):
    """The task is no more."""


@dataclass(slots=True)
class Files(FileStore):
    """Files in memory, whose making lets others do something first."""

    random: random.Random
    keeps_claims: bool = True
    files: dict[str, tuple[bytes, Claim | None]] = field(default_factory=dict)
    world: World | None = None

    def check(self) -> None:
        """It is there."""

    def create(self, name: str, claim: Claim | None = None) -> Upload:
        return File(self, name, claim)

    def open(self, name: str, version: str | None = None) -> BinaryIO:
        raise NotImplementedError

    def list(self, prefix: str) -> Iterator[StoredFile]:
        raise NotImplementedError

    def delete(self, name: str) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Nothing is open."""


class File(Upload):
    def __init__(self, store: Files, name: str, claim: Claim | None) -> None:
        self._store, self._name, self._claim = store, name, claim
        self._data = bytearray()

    def write(self, data: Any, /) -> int:
        self._data += data
        return len(data)

    def complete(self) -> None:
        store, mine = self._store, self._claim
        assert store.world is not None
        store.world.meanwhile()
        _, theirs = store.files.get(self._name, (b"", None))
        if store.keeps_claims and theirs and mine and theirs.rules == mine.rules:
            raise TakenError(self._name, theirs)
        store.files[self._name] = bytes(self._data), mine
        store.world.meanwhile()

    def abort(self) -> None:
        """It was never there."""


class Task:
    """A task that writes one partition."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._position = world.committed
        self._is_busy = False
        self._writer = FileSinkWriter(world.store, world.settings)

    def step(self) -> None:
        """Do a micro-batch, unless it is in one."""
        if self._is_busy:
            return
        world, end = self._world, len(self._world.log)
        self._is_busy = True
        try:
            new = [SinkRange("t", 0, self._position, end)] if self._position < end else []
            for one in self._writer.plan(new, world.now_ms):
                records = iter(world.log[one.start : one.end])
                try:
                    done = self._writer.write(records, one)
                except RetriableError:
                    self._writer.abort([one], [])
                    continue
                assert next(records, None) is None, "the engine wants all to be read"
                offsets = self._writer.commit([one], [done])
                self._position = max(self._position, one.end)
                if world.owner is self:
                    world.committed = offsets["t", 0]
        finally:
            self._is_busy = False


class World:
    """A log that grows, the task that the group knows, and those that it does not know any more."""

    def __init__(self, seed: int, *, keeps_claims: bool = True) -> None:
        self.random = random.Random(seed)
        self.store = Files(self.random, keeps_claims)
        self.store.world = self
        self.settings = FileSettings.of(S3_SINK.parse(SETTINGS), None, "rules")
        self.log: list[SinkRecord] = []
        self.committed = 0
        self.now_ms = 0
        self.owner = Task(self)
        self.others: list[Task] = []
        self.is_calm = False
        self._depth = 0

    def live(self) -> None:
        """Let things happen, then all come to rest."""
        for _ in range(60):
            self._act()
        self.is_calm = True
        for _ in range(200):
            self.now_ms += 5
            self.owner.step()
        assert self.committed == len(self.log)

    def meanwhile(self) -> None:
        """What happens while a task is between two steps; it may not live on."""
        if self.is_calm:
            return
        if self._depth < 3 and self.random.random() < 0.3:
            self._depth += 1
            self._act()
            self._depth -= 1
        if self.random.random() < 0.05:
            raise CrashError
        if self.random.random() < 0.05:
            raise RetriableError("busy")

    def _act(self) -> None:
        chance = self.random.random()
        if chance < 0.4:
            self._append(self.random.randrange(4))
        elif chance < 0.5:
            self.now_ms += self.random.randrange(12)
        elif chance < 0.57:
            self.others.append(self.owner)
            self.owner = Task(self)
        else:
            task = self.random.choice([self.owner, self.owner, *self.others[-2:]])
            try:
                task.step()
            except CrashError:
                if task is self.owner:
                    self.owner = Task(self)
                else:
                    self.others.remove(task)

    def _append(self, count: int) -> None:
        for offset in range(len(self.log), len(self.log) + count):
            value = Struct(ROW, [offset, self.random.choice("ab")])
            self.log.append(
                SinkRecord(
                    topic="t",
                    partition=0,
                    offset=offset,
                    original_topic="t",
                    original_partition=0,
                    original_offset=offset,
                    timestamp_ms=offset,
                    value=value,
                    value_schema=ROW,
                )
            )

    def found(self) -> list[int]:
        """The records in all files."""
        texts = [data.decode() for data, _ in self.store.files.values()]
        return sorted(json.loads(line)["id"] for text in texts for line in text.splitlines())


def test_each_record_is_there_once_whoever_else_writes() -> None:
    for seed in SEEDS:
        world = World(seed)
        world.live()
        assert world.found() == list(range(len(world.log))), seed


def test_without_claims_records_would_be_lost() -> None:
    """The test above looks at what claims are for."""
    wrong = 0
    for seed in SEEDS[:30]:
        world = World(seed, keeps_claims=False)
        world.live()
        wrong += world.found() != list(range(len(world.log)))
    assert wrong


def test_claims_are_read_as_they_are_written() -> None:
    for limit in (None, 0, 250):
        claim = Claim("a1", limit)
        assert Claim.read(claim.text()) == claim
    for text in ("", "a1", "a1/x", "a1/-1"):
        assert Claim.read(text) is None


def test_other_rules_are_other_claims() -> None:
    settings = {"flush.size": "3", "aws.access.key.id": "me", "transforms": "a"}
    rules = rules_of(settings, ["flush.size"])
    assert rules == rules_of({**settings, "aws.access.key.id": "you"}, ["flush.size"])
    assert rules != rules_of({**settings, "flush.size": "4"}, ["flush.size"])
    assert rules != rules_of({**settings, "transforms.a.type": "b"}, ["flush.size"])
    assert of_file(rules, 1) != of_file(rules, 2)


@pytest.fixture(scope="module", params=["moto", "stricter"])
def server(request: pytest.FixtureRequest) -> Iterator[S3Server]:
    with s3_server("moto" if request.param == "moto" else None) as server:
        if request.param != "moto" and server.kind == "moto":
            pytest.skip("needs versitygw, which the slow tests build with Go")
        server.make_bucket("events")
        yield server


def bucket_of(server: S3Server, **more: str) -> Bucket:
    settings = {**SETTINGS, **server.settings("events"), **more}
    return make_bucket(S3_SINK.parse(settings))


def put(bucket: Bucket, name: str, data: bytes, claim: Claim | None) -> None:
    upload = bucket.create(name, claim)
    upload.write(data)
    try:
        upload.complete()
    finally:
        upload.abort()


@pytest.mark.parametrize("size", [1, 5 * 1024 * 1024 + 1], ids=["whole", "parts"])
def test_objects_of_the_same_claim_are_not_replaced(server: S3Server, size: int) -> None:
    bucket = bucket_of(server, **{"s3.part.size": str(5 * 1024 * 1024)})
    put(bucket, "one", b"a" * size, Claim("r", 5))
    with pytest.raises(TakenError) as caught:
        put(bucket, "one", b"b" * size, Claim("r", 7))
    assert caught.value.claim == Claim("r", 5)
    assert server.read("events", "one") == b"a" * size
    put(bucket, "one", b"c" * size, Claim("other", 7))
    assert server.read("events", "one") == b"c" * size
    put(bucket, "one", b"d" * size, None)
    put(bucket, "one", b"e" * size, Claim("r", 7))
    assert server.read("events", "one") == b"e" * size
    assert server.open_uploads("events") == []
    server.client.delete_object(Bucket="events", Key="one")
    bucket.close()


@pytest.mark.parametrize("size", [1, 5 * 1024 * 1024 + 1], ids=["whole", "parts"])
def test_an_object_that_came_since_the_look_is_not_replaced(
    server: S3Server, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = bucket_of(server, **{"s3.part.size": str(5 * 1024 * 1024)})
    look = s3_bucket._condition

    def looked(*given: Any) -> Mapping[str, str]:
        condition = look(*given)
        server.client.put_object(
            Bucket="events",
            Key="one",
            Body=b"first",
            Metadata={s3_bucket.CLAIM: Claim("r", 5).text()},
        )
        return condition

    with monkeypatch.context() as patched:
        patched.setattr(s3_bucket, "_condition", looked)
        with pytest.raises(RetriableError, match="PreconditionFailed"):
            put(bucket, "one", b"b" * size, Claim("r", 7))
    with pytest.raises(TakenError):
        put(bucket, "one", b"b" * size, Claim("r", 7))
    assert server.read("events", "one") == b"first"
    assert server.open_uploads("events") == []
    server.client.delete_object(Bucket="events", Key="one")
    bucket.close()


def test_a_task_that_was_cut_off_writes_no_shorter_object(server: S3Server) -> None:
    settings = {**SETTINGS, **server.settings("events"), "flush.size": "100"}
    old, new = (S3Sink().writer(TaskContext("lake", 0, settings)) for _ in range(2))
    world = World(1)
    world._append(10)
    log = world.log

    def write(writer: Any, end: int, now_ms: int) -> Mapping[Any, int]:
        planned = writer.plan([SinkRange("t", 0, 0, end)], now_ms)
        done = [writer.write(iter(log[one.start : one.end]), one) for one in planned]
        return writer.commit(planned, done)

    assert write(old, 4, 5) == {}, "nothing is due yet"
    assert write(new, 10, 5) == {}
    assert write(new, 10, 10) == {("t", 0): 10}
    before = {key: server.read("events", key) for key in server.keys("events")}
    assert write(old, 4, 10) == {("t", 0): 0}
    assert write(old, 9, 11) == {}, "what the other has written is not there yet, as far as it sees"
    assert write(old, 10, 12) == {("t", 0): 10}
    assert {key: server.read("events", key) for key in server.keys("events")} == before
    assert sum(len(data.splitlines()) for data in before.values()) == 10
    for key in before:
        server.client.delete_object(Bucket="events", Key=key)
    old.stop()


class Answers:
    """A client of a server that knows less than others."""

    def __init__(self, refused: str, code: str) -> None:
        self.refused, self.code = refused, code
        self.put: list[dict[str, Any]] = []

    def head_object(self, **_: Any) -> dict[str, Any]:
        from botocore.exceptions import ClientError

        code = self.code if self.refused == "look" else "404"
        raise ClientError({"Error": {"Code": code}}, "HeadObject")

    def put_object(self, **given: Any) -> None:
        from botocore.exceptions import ClientError

        if self.refused == "condition" and "IfNoneMatch" in given:
            raise ClientError({"Error": {"Code": self.code}}, "PutObject")
        self.put.append(given)


@pytest.mark.parametrize(
    ("refused", "code"), [("look", "403"), ("condition", "NotImplemented"), ("condition", "501")]
)
def test_a_server_without_conditions_is_written_to_all_the_same(
    refused: str,
    code: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    from barnabas.connect.connectors.s3 import bucket as bucket_module

    bucket = make_bucket(S3_SINK.parse({**SETTINGS, "s3.bucket.name": f"{refused}-{code}"}))
    client = Answers(refused, code)
    monkeypatch.setitem(bucket_module._CLIENTS, bucket.place, client)
    for name in ("one", "two"):
        put(bucket, name, b"a", Claim("r", 5))
    assert [given["Key"] for given in client.put] == ["one", "two"]
    assert all("IfNoneMatch" not in given for given in client.put)
    assert caplog.text.count("may overwrite longer objects") == 1


def test_a_claim_that_cannot_be_is_not_followed() -> None:
    world = World(1)
    world._append(5)
    writer = FileSinkWriter(world.store, world.settings)
    (planned,) = writer.plan([SinkRange("t", 0, 0, 5)], 10) or writer.plan([], 20)
    name = "topics/t/city=a/t+0+0000.json"
    for wrong in (name, name.replace("city=a", "city=b")):
        world.store.files[wrong] = b"", Claim(of_file("rules", 0), 0)
    world.is_calm = True
    with pytest.raises(ConnectError, match="written in the meantime"):
        writer.write(iter(world.log), planned)
