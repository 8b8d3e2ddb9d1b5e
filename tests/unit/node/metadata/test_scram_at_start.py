"""By which credentials nodes log in while a node does not know yet what is committed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from barnabas.app.local_nodes import standalone_properties
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.metadata.bootstrap import write_bootstrap
from barnabas.node.metadata.image import MetadataImage
from barnabas.node.metadata.records import MetadataRecord, encode_record
from barnabas.node.metadata.scram_credentials import ScramCredentials
from barnabas.node.raft.recovery import LogBatch
from barnabas.protocol.features import LATEST_METADATA_VERSION, METADATA_VERSION
from barnabas.protocol.messages.metadata_records import (
    FeatureLevelRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from barnabas.protocol.schema import Message
from sim.fake_disk import FakeDisk

DIRECTORY = "/data"
SCRAM_256 = 1
JAAS = "org.apache.kafka.common.security.scram.ScramLoginModule required username=node password=x;"
SECURED = {
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
    "listener.name.controller.sasl.enabled.mechanisms": "SCRAM-SHA-256",
    "listener.name.controller.scram-sha-256.sasl.jaas.config": JAAS,
    "sasl.mechanism.controller.protocol": "SCRAM-SHA-256",
}
LEVELS = {METADATA_VERSION: int(LATEST_METADATA_VERSION)}
LEVEL = FeatureLevelRecord(name=METADATA_VERSION, feature_level=int(LATEST_METADATA_VERSION))


def user(name: str, salt: bytes = b"") -> UserScramCredentialRecord:
    return UserScramCredentialRecord(name=name, mechanism=SCRAM_256, salt=salt, iterations=4096)


def without(name: str) -> RemoveUserScramCredentialRecord:
    return RemoveUserScramCredentialRecord(name=name, mechanism=SCRAM_256)


def batch(base_offset: int, *messages: Message) -> LogBatch:
    values = [encode_record(MetadataRecord(message)) for message in messages]
    return LogBatch(base_offset, 1, 0, values)


class World:
    """A node at its start, with an image that grows."""

    def __init__(self, **properties: str) -> None:
        self.disk = FakeDisk()
        self.disk.make_dirs(DIRECTORY)
        self.image = MetadataImage()
        values = standalone_properties(DIRECTORY, overrides={**SECURED, **properties})
        config = NodeConfig.from_properties(values)
        self.credentials = ScramCredentials(config, lambda: self.image)

    def format(self, *messages: Message) -> None:
        records = [MetadataRecord(message) for message in (LEVEL, *messages)]
        write_bootstrap(self.disk, DIRECTORY, records, now_ms=0)

    def start(self, *batches: LogBatch) -> None:
        self.credentials.recovered(batches, self.disk, DIRECTORY)

    def knows(self, offset: int, *users: UserScramCredentialRecord) -> None:
        scram = {(SCRAM_256, one.name): one for one in users}
        self.image = replace(self.image, offset=offset, features=LEVELS, scram=scram)

    def salt(self, name: str) -> bytes | None:
        found = self.credentials.find(SCRAM_256, name)
        return None if found is None else found.salt


@pytest.fixture
def world() -> World:
    return World()


def test_an_empty_log_goes_by_what_the_directory_was_formatted_with(world: World) -> None:
    world.format(user("node", b"formatted"))
    world.start()
    assert world.salt("node") == b"formatted"
    assert world.salt("other") is None
    world.knows(0, user("node", b"committed"))
    assert world.salt("node") == b"committed"


def test_what_was_formatted_counts_no_more_once_something_is_committed(world: World) -> None:
    world.format(user("node", b"formatted"))
    world.start()
    world.knows(0)
    assert world.salt("node") is None


def test_a_log_counts_until_the_image_has_all_of_it(world: World) -> None:
    world.format(user("node", b"formatted"))
    world.start(
        batch(0, LEVEL, user("node", b"first"), user("old")), batch(3, without("old"), LEVEL)
    )
    for offset in (-1, 3):
        world.knows(offset, user("old", b"image"), user("other", b"image"))
        assert world.salt("node") == b"first"
        assert world.salt("old") is None
        assert world.salt("other") == b"image"
    world.knows(4, user("node", b"committed"))
    assert world.salt("node") == b"committed"
    world.knows(2)  # an image only grows; nothing is gone back to
    assert world.salt("node") is None


def test_a_snapshot_counts_as_it_is(world: World) -> None:
    world.format(user("node", b"formatted"))
    world.knows(10, user("node", b"snapshot"))
    world.start()
    assert world.salt("node") == b"snapshot"


def test_a_damaged_first_file_leaves_nobody(world: World) -> None:
    world.disk.write_atomic(f"{DIRECTORY}/bootstrap.checkpoint", b"nonsense")
    world.start()
    assert world.salt("node") is None


def test_a_node_without_scram_reads_nothing() -> None:
    world = World(
        **{
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        }
    )
    world.format(user("node", b"formatted"))
    world.start(batch(0, user("node", b"log")))
    assert world.salt("node") is None


def test_the_first_user_is_the_same_in_whatever_order_users_came() -> None:
    ones = [user("carol"), user("alice"), user("bob")]
    for users in (ones, ones[::-1]):
        world = World()
        assert world.credentials.first(SCRAM_256) is None
        world.knows(9, *users)
        first = world.credentials.first(SCRAM_256)
        assert first is not None
        assert first.name == "alice"
        world.knows(10, ones[0])
        first = world.credentials.first(SCRAM_256)
        assert first is not None
        assert first.name == "carol"
