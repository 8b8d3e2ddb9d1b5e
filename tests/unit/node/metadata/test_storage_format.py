"""What `storage format` and `storage info` do."""

import base64
import hashlib
import hmac
import random
from pathlib import Path
from typing import Any

import pytest

from barnabas.base.ids import Uuid, uuid_to_text
from barnabas.base.local_disk import LocalDisk
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.metadata.bootstrap import read_bootstrap
from barnabas.node.metadata.directories import load_directories
from barnabas.node.metadata.ids import is_reserved, random_uuid
from barnabas.node.metadata.meta_properties import (
    MetaProperties,
    MetaPropertiesError,
    check_ensemble,
    read_meta_properties,
    write_meta_properties,
)
from barnabas.node.metadata.scram import ScramError, parse_scram
from barnabas.node.metadata.storage_format import (
    FormatError,
    FormatOptions,
    format_directories,
    random_cluster_id,
    storage_info,
)
from barnabas.node.raft.snapshot_files import BOOTSTRAP_SNAPSHOT, read_snapshot

CLUSTER_ID = "wNy8cT3ESyCmV0WqO_SnvA"
DIRECTORY = "JEXY6aqzQY-32P5TStzaFg"


@pytest.fixture
def disk() -> Any:
    local = LocalDisk()
    yield local
    local.close()


def config(tmp_path: Path, **overrides: str) -> NodeConfig:
    return NodeConfig.from_properties(
        {
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": "PLAINTEXT://localhost:9292,CONTROLLER://localhost:9293",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": "localhost:9293",
            "log.dirs": str(tmp_path / "a"),
            **{name.replace("_", "."): value for name, value in overrides.items()},
        }
    )


def run(disk: LocalDisk, node: NodeConfig, **options: Any) -> list[str]:
    wanted = FormatOptions(**{"cluster_id": CLUSTER_ID, **options})
    return format_directories(disk, node, wanted, random=random.Random(3), now_ms=7)


def features(disk: LocalDisk, directory: Path) -> dict[str, int]:
    records = read_bootstrap(disk, str(directory))
    return {
        record.message.name: record.message.feature_level
        for record in records
        if hasattr(record.message, "feature_level")
    }


def test_a_standalone_controller(disk: LocalDisk, tmp_path: Path) -> None:
    node = config(tmp_path)
    lines = run(disk, node, standalone=True)
    assert lines == [
        f"Formatting dynamic metadata voter directory {tmp_path}/a with metadata.version 4.3-IV0."
    ]
    properties = read_meta_properties(disk, f"{tmp_path}/a")
    assert properties is not None
    assert (properties.version, properties.cluster_id, properties.node_id) == (1, CLUSTER_ID, 1)
    snapshot = read_snapshot(disk, f"{tmp_path}/a/__cluster_metadata-0", BOOTSTRAP_SNAPSHOT)
    assert snapshot.voters is not None
    [voter] = snapshot.voters.by_id.values()
    assert (voter.key.id, voter.key.directory_id) == (1, properties.directory_id)
    assert [(end.listener, end.host, end.port) for end in voter.endpoints] == [
        ("CONTROLLER", "localhost", 9293)
    ]
    assert snapshot.kraft_version == 1
    assert features(disk, tmp_path / "a") == {
        "metadata.version": 30,
        "eligible.leader.replicas.version": 1,
        "group.version": 1,
        "share.version": 1,
        "streams.version": 1,
        "transaction.version": 2,
    }


def test_a_static_quorum_has_no_first_snapshot(disk: LocalDisk, tmp_path: Path) -> None:
    node = config(tmp_path, controller_quorum_voters="1@localhost:9293")
    [line] = run(disk, node)
    assert line.startswith("Formatting metadata directory ")
    assert not (tmp_path / "a" / "__cluster_metadata-0").exists()


def test_every_directory_gets_an_id_of_its_own(disk: LocalDisk, tmp_path: Path) -> None:
    node = config(
        tmp_path,
        log_dirs=f"{tmp_path}/a,{tmp_path}/b,{tmp_path}/c",
        metadata_log_dir=f"{tmp_path}/m",
    )
    lines = run(disk, node, standalone=True)
    assert [line.split()[1] for line in lines] == ["data", "data", "data", "dynamic"]
    loaded = load_directories(disk, node, random.Random(1))
    assert loaded.cluster_id == CLUSTER_ID
    assert set(loaded.ids) == {f"{tmp_path}/{name}" for name in "abcm"}
    assert len(set(loaded.ids.values())) == 4


def test_initial_controllers_are_the_same_on_every_node(disk: LocalDisk, tmp_path: Path) -> None:
    controllers = f"1@h1:9093:{DIRECTORY},2@h2:9093:{uuid_to_text(Uuid(bytes([3] * 16)))}"
    run(disk, config(tmp_path), initial_controllers=controllers)
    properties = read_meta_properties(disk, f"{tmp_path}/a")
    assert properties is not None
    assert properties.directory_id is not None
    assert uuid_to_text(properties.directory_id) == DIRECTORY
    observer = config(tmp_path, log_dirs=f"{tmp_path}/o", **{"node.id": "5"})
    [line] = run(disk, observer, initial_controllers=controllers)
    assert "dynamic metadata directory" in line


def test_a_node_that_joins_later(disk: LocalDisk, tmp_path: Path) -> None:
    [line] = run(disk, config(tmp_path), no_initial_controllers=True)
    assert line.startswith("Formatting metadata directory")


def test_formatted_directories_are_left_alone(disk: LocalDisk, tmp_path: Path) -> None:
    run(disk, config(tmp_path), standalone=True)
    before = read_meta_properties(disk, f"{tmp_path}/a")
    with pytest.raises(FormatError, match="already formatted"):
        run(disk, config(tmp_path), standalone=True)
    node = config(tmp_path, log_dirs=f"{tmp_path}/a,{tmp_path}/b")
    [line] = run(disk, node, standalone=True, ignore_formatted=True)
    assert line.startswith(f"Formatting data directory {tmp_path}/b")
    assert run(disk, node, standalone=True, ignore_formatted=True) == [
        "All of the log directories are already formatted."
    ]
    assert read_meta_properties(disk, f"{tmp_path}/a") == before


def test_a_release_gives_its_features(disk: LocalDisk, tmp_path: Path) -> None:
    [line] = run(disk, config(tmp_path), standalone=True, release_version="3.9")
    assert line.endswith("metadata.version 3.9-IV0.")
    assert features(disk, tmp_path / "a") == {"metadata.version": 21}


def test_features_can_be_chosen(disk: LocalDisk, tmp_path: Path) -> None:
    chosen = {"transaction.version": 1, "group.version": 0}
    run(disk, config(tmp_path), standalone=True, features=chosen)
    levels = features(disk, tmp_path / "a")
    assert levels["transaction.version"] == 1
    assert "group.version" not in levels


DIRECTORY, OTHER_DIRECTORY = "JEXY6aqzQY-32P5TStzaFg", "MvDxzVmcRsaTz33bUuRU6A"
REFUSED: dict[str, tuple[dict[str, str], dict[str, Any], str]] = {
    "no way to a quorum": ({}, {}, "you must specify one of the following"),
    "two ways": (
        {},
        {"standalone": True, "no_initial_controllers": True},
        "only one of --standalone",
    ),
    "static and dynamic": (
        {"controller_quorum_voters": "1@localhost:9293"},
        {"standalone": True},
        "quorum is static",
    ),
    "bad controllers": ({}, {"initial_controllers": "1@h"}, "not of the form"),
    "one directory for two": (
        {},
        {"initial_controllers": f"1@h:1:{DIRECTORY},2@h:2:{DIRECTORY}"},
        "Controllers 1 and 2 have the same directory ID",
    ),
    "one address for two": (
        {},
        {"initial_controllers": f"1@h:1:{DIRECTORY},2@h:1:{OTHER_DIRECTORY}"},
        "Controllers 1 and 2 have the same address",
    ),
    "a reserved directory": (
        {},
        {"initial_controllers": "1@h:1:AAAAAAAAAAAAAAAAAAAAEA"},
        "is reserved",
    ),
    "one id twice": (
        {},
        {"initial_controllers": f"1@h:1:{DIRECTORY},1@h:2:{OTHER_DIRECTORY}"},
        "voter 1 is listed twice",
    ),
    "unknown release": ({}, {"standalone": True, "release_version": "9.9"}, "9.9"),
    "unknown feature": ({}, {"standalone": True, "features": {"x": 1}}, "Unsupported feature: x"),
    "level too high": (
        {},
        {"standalone": True, "features": {"group.version": 5}},
        "group.version=5 is not supported",
    ),
    "release twice": (
        {},
        {"standalone": True, "release_version": "4.0", "features": {"metadata.version": 25}},
        "Use --release-version instead",
    ),
    "dependency": (
        {},
        {
            "standalone": True,
            "release_version": "3.9",
            "features": {"eligible.leader.replicas.version": 1},
        },
        "requires metadata.version",
    ),
    "static kraft.version": (
        {"controller_quorum_voters": "1@localhost:9293"},
        {"features": {"kraft.version": 1}},
        "Cannot set kraft.version to 1 unless",
    ),
    "dynamic kraft.version": (
        {},
        {"standalone": True, "features": {"kraft.version": 0}},
        "Cannot set kraft.version to 0 if",
    ),
    "scram before its time": (
        {},
        {
            "standalone": True,
            "release_version": "3.4",
            "scram": ["SCRAM-SHA-256=[name=a,password=b]"],
        },
        "3.5-IV2",
    ),
    "scram that is none": ({}, {"standalone": True, "scram": ["x"]}, "equals sign"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_write_nothing(disk: LocalDisk, tmp_path: Path, case: str) -> None:
    overrides, options, words = REFUSED[case]
    with pytest.raises(FormatError) as caught:
        run(disk, config(tmp_path, **overrides), **options)
    assert words in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_directory_of_another_cluster_is_refused(disk: LocalDisk, tmp_path: Path) -> None:
    run(disk, config(tmp_path), standalone=True)
    with pytest.raises(FormatError, match=r"Invalid cluster\.id"):
        run(disk, config(tmp_path), standalone=True, cluster_id="other", ignore_formatted=True)


def test_brokers_need_no_voters(disk: LocalDisk, tmp_path: Path) -> None:
    node = NodeConfig.from_properties(
        {
            "process.roles": "broker",
            "node.id": "4",
            "listeners": "PLAINTEXT://localhost:9292",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": "c:9093",
            "log.dirs": f"{tmp_path}/a",
        }
    )
    assert len(run(disk, node)) == 1
    with pytest.raises(FormatError, match="on a controller"):
        run(disk, node, standalone=True)


# -- storage info


def test_info_of_a_formatted_node(disk: LocalDisk, tmp_path: Path) -> None:
    run(disk, config(tmp_path), standalone=True)
    info = storage_info(disk, config(tmp_path))
    assert info.problems == []
    assert info.metadata["cluster.id"] == CLUSTER_ID
    assert info.lines()[:2] == ["Found log directory:", f"  {tmp_path}/a"]


def test_info_names_every_problem(disk: LocalDisk, tmp_path: Path) -> None:
    names = "abcde"
    node = config(tmp_path, log_dirs=",".join(f"{tmp_path}/{name}" for name in names))
    for name in "acde":
        (tmp_path / name).mkdir()
    (tmp_path / "d").rmdir()
    (tmp_path / "d").write_text("a file")
    write_meta_properties(disk, f"{tmp_path}/a", MetaProperties(CLUSTER_ID, 1, None))
    write_meta_properties(disk, f"{tmp_path}/c", MetaProperties("other", 1, None))
    (tmp_path / "e" / "meta.properties").write_text("version=1\n")
    problems = " | ".join(storage_info(disk, node).problems)
    for words in (
        "b does not exist",
        "d is not a directory",
        "Error loading",
        "Mismatched cluster IDs",
    ):
        assert words in problems
    assert "Found problems:" in storage_info(disk, node).lines()


# -- meta.properties


@pytest.mark.parametrize("cluster_id", [CLUSTER_ID, "a=b:c#d!e\\f", " spaced", "ünïcode 🦊"])
def test_meta_properties_round_trip(disk: LocalDisk, tmp_path: Path, cluster_id: str) -> None:
    properties = MetaProperties(cluster_id, 7, Uuid(bytes([8] * 16)))
    write_meta_properties(disk, str(tmp_path), properties)
    assert read_meta_properties(disk, str(tmp_path)) == properties


@pytest.mark.parametrize(
    "text",
    [
        "version=1\nnode.id=1\n",
        "version=1\ncluster.id=x\n",
        "version=2\ncluster.id=x\nnode.id=1\n",
        "version=1\ncluster.id=x\nnode.id=one\n",
        "version=1\ncluster.id=x\nnode.id=1\ndirectory.id=short\n",
    ],
)
def test_meta_properties_that_cannot_be_read(disk: LocalDisk, tmp_path: Path, text: str) -> None:
    (tmp_path / "meta.properties").write_text(text)
    with pytest.raises(MetaPropertiesError, match=r"meta\.properties"):
        read_meta_properties(disk, str(tmp_path))


def test_directories_that_do_not_belong_together() -> None:
    one = MetaProperties(CLUSTER_ID, 1, Uuid(bytes([8] * 16)))
    check_ensemble({"/a": one}, cluster_id=None, node_id=1)
    for other, words in (
        (MetaProperties("other", 1, None), "cluster.id"),
        (MetaProperties(CLUSTER_ID, 2, None), "Stored node id 2"),
        (one, "Duplicate directory ID"),
        (MetaProperties(CLUSTER_ID, 1, Uuid(bytes(16))), "Reserved directory ID"),
    ):
        with pytest.raises(MetaPropertiesError) as caught:
            check_ensemble({"/a": one, "/b": other}, cluster_id=None, node_id=1)
        assert words in str(caught.value)


def test_a_directory_without_an_id_gets_one(disk: LocalDisk, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    write_meta_properties(disk, f"{tmp_path}/a", MetaProperties(CLUSTER_ID, 1, None))
    loaded = load_directories(disk, config(tmp_path), random.Random(1))
    written = read_meta_properties(disk, f"{tmp_path}/a")
    assert written is not None
    assert loaded.ids == {f"{tmp_path}/a": written.directory_id}


@pytest.mark.parametrize(
    "content",
    [bytes(300), b"", b"version=1\nnode.id=1\n", b"version=1\ncluster.id=\xff\nnode.id=1\n"],
    ids=["zeros", "empty", "cut-off", "no-text"],
)
def test_a_garbled_file_is_named_and_not_taken_for_none(
    disk: LocalDisk, tmp_path: Path, content: bytes
) -> None:
    """Formatting a directory that holds data is no way out."""
    (tmp_path / "a").mkdir()
    disk.write_atomic(f"{tmp_path}/a/meta.properties", content)
    with pytest.raises(MetaPropertiesError, match=r"/a/meta\.properties") as caught:
        load_directories(disk, config(tmp_path), random.Random(1))
    assert "format" not in str(caught.value)


def test_a_node_lives_without_a_broken_data_directory(tmp_path: Path) -> None:
    class HalfBroken(LocalDisk):
        def exists(self, path: str) -> bool:
            if "/b/" in path:
                raise OSError(5, "broken")
            return super().exists(path)

    disk = HalfBroken()
    node = config(tmp_path, log_dirs=f"{tmp_path}/a,{tmp_path}/b")
    (tmp_path / "a").mkdir()
    write_meta_properties(disk, f"{tmp_path}/a", MetaProperties(CLUSTER_ID, 1, None))
    loaded = load_directories(disk, node, random.Random(1))
    assert list(loaded.failed) == [f"{tmp_path}/b"]
    disk.close()


# -- ids and SCRAM


def test_random_ids_are_usable_on_a_command_line() -> None:
    source = random.Random(4)
    for _ in range(500):
        uuid = random_uuid(source)
        assert uuid[6] >> 4 == 4
        assert not is_reserved(uuid)
        assert not uuid_to_text(uuid).startswith("-")
    assert len(random_cluster_id(source)) == 22


SALT = "W22ZaJ0SNY7soEsUEjb6gQ=="
NONCE = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
AUTH_MESSAGE = (
    f"n=user,r=rOprNGfwEbeRWgbNEkqO,r={NONCE},s={SALT},i=4096,c=biws,r={NONCE}"
).encode()
"""The exchange of RFC 7677, section 3."""


def test_scram_credentials_are_what_the_rfc_computes() -> None:
    argument = f'SCRAM-SHA-256=[name=user,password=pencil,iterations=4096,salt="{SALT}"]'
    record = parse_scram(argument, random.Random(1)).message
    assert (record.name, record.mechanism, record.iterations) == ("user", 1, 4096)
    signature = hmac.digest(record.server_key, AUTH_MESSAGE, "sha256")
    assert base64.b64encode(signature) == b"6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    proof = base64.b64decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
    mask = hmac.digest(record.stored_key, AUTH_MESSAGE, "sha256")
    client_key = bytes(left ^ right for left, right in zip(proof, mask, strict=True))
    assert hashlib.sha256(client_key).digest() == record.stored_key


def test_scram_credentials_from_a_salted_password() -> None:
    salted = hashlib.pbkdf2_hmac("sha512", b"pencil", base64.b64decode(SALT), 8192)
    given = base64.b64encode(salted).decode()
    start = f"SCRAM-SHA-512=[name=user,iterations=8192,salt={SALT}"
    source = random.Random(1)
    assert parse_scram(f"{start},saltedpassword={given}]", source) == parse_scram(
        f"{start},password=pencil]", source
    )


@pytest.mark.parametrize(
    "argument",
    [
        "",
        "SCRAM-SHA-1=[name=a,password=b]",
        "SCRAM-SHA-256=name=a",
        "SCRAM-SHA-256=[password=b]",
        "SCRAM-SHA-256=[name=a]",
        "SCRAM-SHA-256=[name=a,password=b,saltedpassword=Yg==]",
        "SCRAM-SHA-256=[name=a,saltedpassword=Yg==]",
        "SCRAM-SHA-256=[name=a,password=b,iterations=1]",
        "SCRAM-SHA-256=[name=a,password=b,iterations=many]",
        "SCRAM-SHA-256=[name=a,password=b,salt=*]",
        "SCRAM-SHA-256=[name=a,password=b,shoe=1]",
        "SCRAM-SHA-256=[name]",
        "SCRAM-SHA-256=[name=a,password=b,with-secret]",
        "SCRAM-SHA-256=[name=a,saltedpassword=with-secret,salt=Yg==]",
        "SCRAM-SHA-256:[name=a,password=with-secret]",
    ],
)
def test_scram_arguments_that_make_no_credential(argument: str) -> None:
    with pytest.raises(ScramError) as caught:
        parse_scram(argument, random.Random(1))
    assert "with-secret" not in str(caught.value)
