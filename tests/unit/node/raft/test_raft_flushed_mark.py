"""The mark of what is on the medium: one open file, overwritten in place."""

import errno
import os

import pytest

from barnabas.node.raft.replica_log import MARK_FILE_NAME, FlushedMark
from sim.fake_disk import FakeDisk

DIRECTORY = "/log"
PATH = f"{DIRECTORY}/{MARK_FILE_NAME}"


@pytest.fixture
def disk() -> FakeDisk:
    made = FakeDisk()
    made.make_dirs(DIRECTORY)
    return made


def read(disk: FakeDisk) -> int:
    return FlushedMark(disk, DIRECTORY).read()


def test_it_is_kept_while_no_file_can_be_opened(disk: FakeDisk) -> None:
    mark = FlushedMark(disk, DIRECTORY)
    mark.raise_to(10)
    disk.fail("open write_atomic", code=errno.EMFILE)
    for offset in (11, 200, 3000):
        mark.raise_to(offset)
    mark.lower_to(7)
    disk.fault = None
    assert read(disk) == 7


def test_it_goes_on_after_it_was_closed(disk: FakeDisk) -> None:
    mark = FlushedMark(disk, DIRECTORY)
    for offset in (10, 11):
        mark.raise_to(offset)
        mark.close()
        mark.close()
    assert read(disk) == 11


def test_it_never_says_more_than_was_written(disk: FakeDisk) -> None:
    """For each state that a power cut can leave: new bytes up to a position, then old ones."""
    mark = FlushedMark(disk, DIRECTORY)
    mark.raise_to(199)
    old = disk.read(PATH)
    mark.raise_to(200)
    new = disk.read(PATH)
    assert len(old) == len(new)
    for cut in range(len(new) + 1):
        for torn in (new[:cut] + old[cut:], old[:cut] + new[cut:], new[:cut]):
            disk.write_atomic(PATH, torn)
            assert read(disk) in (0, 199, 200) or read(disk) < 199


@pytest.mark.parametrize(
    ("content", "offset"),
    [(b"17\n", 17), (b"", 0), (b"\xff\x00", 0), (b"17 18\n", 0), (bytes(30), 0)],
)
def test_what_it_finds(disk: FakeDisk, content: bytes, offset: int) -> None:
    disk.write_atomic(PATH, content)
    mark = FlushedMark(disk, DIRECTORY)
    assert mark.read() == offset
    mark.raise_to(18)
    assert read(disk) == 18


def test_lowering_it_is_on_the_medium(disk: FakeDisk) -> None:
    mark = FlushedMark(disk, DIRECTORY)
    mark.raise_to(100)
    mark.lower_to(5)
    assert disk.inode(PATH).durable == disk.read(PATH)
    assert os.path.basename(PATH) in disk.list(DIRECTORY)
