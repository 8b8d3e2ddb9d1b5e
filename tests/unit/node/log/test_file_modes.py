"""Files and directories of a node are not readable by other users of the machine."""

import os
import stat
from pathlib import Path

import barnabas
from barnabas.base.local_disk import LocalDisk
from support.raw_client import RawClient


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_others_read_nothing_of_a_node(tmp_path: Path) -> None:
    directory = tmp_path / "cluster"
    umask = os.umask(0o022)
    try:
        with (
            barnabas.Cluster(directory=str(directory)) as cluster,
            RawClient(cluster.bootstrap_servers) as client,
        ):
            client.create_topic("secrets")
    finally:
        os.umask(umask)
    made = [path for path in directory.rglob("*") if "__cluster_metadata-0" in str(path)]
    made += [path for path in directory.rglob("*") if "secrets-0" in str(path)]
    files = [path for path in made if path.is_file()]
    assert any(path.suffix == ".log" for path in files)
    readable = [path for path in made if path.is_dir() and mode(path) & 0o007]
    readable += [path for path in files if mode(path) & 0o007]
    assert readable == []
    assert all(mode(path) & 0o600 for path in files)


def test_what_exists_keeps_its_mode(tmp_path: Path) -> None:
    disk = LocalDisk()
    (tmp_path / "there").mkdir(mode=0o755)
    disk.make_dirs(str(tmp_path / "there"))
    assert mode(tmp_path / "there") == 0o755
    disk.make_dirs(str(tmp_path / "a/b"))
    assert mode(tmp_path / "a/b") & 0o007 == 0
    disk.write_atomic(str(tmp_path / "checkpoint"), b"0")
    assert mode(tmp_path / "checkpoint") & 0o007 == 0
