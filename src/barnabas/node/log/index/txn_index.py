"""The transaction index: which transactions of a segment were aborted.

An entry (34 bytes, big-endian): version i16 = 0, producer id i64, first and last offset of the
transaction i64 each, and the last stable offset when it ended, i64. The file exists only where
something was aborted. Source: Kafka's TransactionIndex and AbortedTxn.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from barnabas.base.disk import Disk
from barnabas.node.log.errors import CorruptIndexError
from barnabas.node.log.file_cache import FileCache

ENTRY: Final = Struct(">hqqqq")
VERSION: Final = 0


class AbortedTransaction(NamedTuple):
    """One producer's aborted transaction. `last_offset` is its marker's."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def append_aborted(files: FileCache, path: str, aborted: AbortedTransaction) -> None:
    """Add an entry, creating the file for the first one."""
    files.get(path, create=True).append((ENTRY.pack(VERSION, *aborted),))


def read_aborted(disk: Disk, path: str) -> Iterator[AbortedTransaction]:
    """The entries, in the order in which the transactions ended; none if there is no file.

    Raises CorruptIndexError for a ragged file or an unknown version.
    """
    try:
        data = disk.read(path)
    except FileNotFoundError:
        return
    if len(data) % ENTRY.size:
        raise CorruptIndexError(f"{path} has {len(data)} bytes, not a multiple of the entry size")
    for version, *fields in ENTRY.iter_unpack(data):
        if version > VERSION:
            raise CorruptIndexError(f"{path} has entries of version {version}")
        yield AbortedTransaction(*fields)


def truncate_aborted(disk: Disk, files: FileCache, path: str, offset: int) -> None:
    """Drop the transactions that ended at `offset` or after, and a last entry that is cut off."""
    if not disk.exists(path):
        return
    data = disk.read(path)
    whole = data[: len(data) - len(data) % ENTRY.size]
    kept = sum(
        AbortedTransaction(*entry[1:]).last_offset < offset for entry in ENTRY.iter_unpack(whole)
    )
    files.get(path).truncate(kept * ENTRY.size)
