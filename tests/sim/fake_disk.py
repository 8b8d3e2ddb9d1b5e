"""A disk in memory that loses what was not synced.

Writes reach the medium with the file's fsync, names with their directory's sync. A power cut
keeps what is on the medium and, of the rest, what chance leaves: for each directory a prefix of
its changes, for each file some prefix of what was appended, perhaps followed by garbage. A
killed process loses nothing that it wrote. Errors, a size limit and held fsyncs are injected.
"""

import asyncio
import errno
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from barnabas.base.disk import Buffer, DiskFile


@dataclass(eq=False, slots=True)
class Inode:
    """A file's bytes, and those of them that are on the medium."""

    data: bytearray = field(default_factory=bytearray)
    durable: bytes = b""
    modified_ms: int = 0


@dataclass(eq=False, slots=True)
class Directory:
    """Names → nodes now, on the medium, and the changes between."""

    entries: "dict[str, Node]" = field(default_factory=dict)
    durable: "dict[str, Node]" = field(default_factory=dict)
    pending: "list[tuple[str, Node | None]]" = field(default_factory=list)

    def put(self, name: str, node: "Node | None") -> None:
        """Bind or, with None, unbind a name."""
        self.pending.append((name, node))
        _bind(self.entries, name, node)

    def sync(self) -> None:
        self.durable = dict(self.entries)
        self.pending.clear()


Node = Inode | Directory


def _bind(entries: dict[str, Node], name: str, node: Node | None) -> None:
    if node is None:
        entries.pop(name, None)
    else:
        entries[name] = node


class FakeFile:
    """An open file; of no use after a power cut."""

    def __init__(self, disk: "FakeDisk", path: str, inode: Inode) -> None:
        self.path = path
        self._disk = disk
        self._inode = inode
        self._generation = disk.generation

    def _touch(self, operation: str, size_bytes: int = 0) -> bytearray:
        assert self._generation == self._disk.generation, "a file of before the power cut"
        self._disk.check(operation, self.path, size_bytes)
        return self._inode.data

    def size(self) -> int:
        return len(self._inode.data)

    def append(self, buffers: Sequence[Buffer]) -> int:
        total = sum(map(len, buffers))
        data = self._touch("append", total)
        for buffer in buffers:
            data += buffer
        self._inode.modified_ms = self._disk.now_ms
        self._disk.append_count += 1
        return total

    def pread(self, size_bytes: int, position: int) -> bytes:
        data = self._touch("pread")
        if position < 0:
            raise OSError(errno.EINVAL, "a position before the file", self.path)
        return bytes(data[position : position + size_bytes])

    def pwrite(self, data: Buffer, position: int) -> None:
        content = self._touch("pwrite", len(data))
        if position > len(content):
            content += bytes(position - len(content))
        content[position : position + len(data)] = data

    def truncate(self, size_bytes: int) -> None:
        data = self._touch("truncate")
        if size_bytes < len(data):
            del data[size_bytes:]
        else:
            data += bytes(size_bytes - len(data))

    def fsync(self) -> None:
        data = self._touch("fsync")
        self._inode.durable = bytes(data)
        self._disk.fsync_count += 1

    def fileno(self) -> int:
        return -1

    def close(self) -> None:
        """Nothing to give back."""


class FakeDisk:
    """See the module. `now_ms` stamps writes; `fault` may raise OSError for an operation."""

    def __init__(self, capacity_bytes: int | None = None) -> None:
        self._root = Directory()
        self.generation = 0
        self.now_ms = 0
        self.capacity_bytes = capacity_bytes
        self.fault: Callable[[str, str], None] | None = None
        self.append_count = 0
        self.fsync_count = 0
        self.held: asyncio.Event | None = None
        """When set, fsync_soon waits for it."""

    # Faults and cuts

    def check(self, operation: str, path: str, size_bytes: int = 0) -> None:
        """Raise what was injected, or ENOSPC."""
        if self.fault is not None:
            self.fault(operation, path)
        if self.capacity_bytes is not None and size_bytes > self.free_bytes("/"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    def fail(self, operations: str, below: str = "/", code: int = errno.EIO) -> None:
        """From now on, `operations` (space-separated names) on paths below `below` fail."""
        names = operations.split()

        def fault(operation: str, path: str) -> None:
            if operation in names and path.startswith(below):
                raise OSError(code, os.strerror(code), path)

        self.fault = fault

    def cut_power(self, random: Random) -> None:
        """Lose what chance takes of all that was not synced."""
        self.generation += 1
        self._cut(self._root, random, set())

    def _cut(self, directory: Directory, random: Random, seen: set[int]) -> None:
        entries = dict(directory.durable)
        for name, node in directory.pending[: random.randint(0, len(directory.pending))]:
            _bind(entries, name, node)
        directory.entries = entries
        directory.sync()
        for node in entries.values():
            if id(node) in seen:
                continue
            seen.add(id(node))
            if isinstance(node, Directory):
                self._cut(node, random, seen)
            else:
                _cut_file(node, random)

    # Disk

    def _find(self, path: str) -> Node:
        node: Node = self._root
        for name in path.split("/")[1:]:
            if name:
                if not isinstance(node, Directory) or name not in node.entries:
                    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
                node = node.entries[name]
        return node

    def _parent(self, path: str) -> tuple[Directory, str]:
        head, _, name = path.rpartition("/")
        parent = self._find(head)
        assert isinstance(parent, Directory)
        return parent, name

    def inode(self, path: str) -> Inode:
        """The file at `path`, to be looked at or spoilt."""
        node = self._find(path)
        if not isinstance(node, Inode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        return node

    def open(self, path: str, *, create: bool = False) -> DiskFile:
        self.check("open", path)
        parent, name = self._parent(path)
        if name not in parent.entries:
            if not create:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            parent.put(name, Inode(modified_ms=self.now_ms))
        return FakeFile(self, path, self.inode(path))

    def read(self, path: str) -> bytes:
        self.check("read", path)
        return bytes(self.inode(path).data)

    def write_atomic(self, path: str, data: bytes, *, sync: bool = True) -> None:
        self.check("write_atomic", path, len(data))
        parent, name = self._parent(path)
        inode = Inode(bytearray(data), modified_ms=self.now_ms)
        if sync:
            inode.durable = bytes(data)
        parent.put(name, inode)
        if sync:
            parent.sync()

    def exists(self, path: str) -> bool:
        try:
            self._find(path)
        except FileNotFoundError:
            return False
        return True

    def is_dir(self, path: str) -> bool:
        return self.exists(path) and isinstance(self._find(path), Directory)

    def list(self, path: str) -> list[str]:
        self.check("list", path)
        node = self._find(path)
        assert isinstance(node, Directory)
        return sorted(node.entries)

    def make_dirs(self, path: str) -> None:
        self.check("make_dirs", path)
        node: Directory = self._root
        for name in path.split("/")[1:]:
            if name:
                if name not in node.entries:
                    node.put(name, Directory())
                child = node.entries[name]
                assert isinstance(child, Directory)
                node = child

    def remove(self, path: str) -> None:
        self.check("remove", path)
        parent, name = self._parent(path)
        self.inode(path)
        parent.put(name, None)

    def remove_tree(self, path: str) -> None:
        self.check("remove_tree", path)
        parent, name = self._parent(path)
        self._find(path)
        parent.put(name, None)

    def rename(self, source: str, target: str) -> None:
        self.check("rename", source)
        node = self._find(source)
        parent, name = self._parent(target)
        old_parent, old_name = self._parent(source)
        parent.put(name, node)
        old_parent.put(old_name, None)

    def sync_dir(self, path: str) -> None:
        self.check("sync_dir", path)
        node = self._find(path)
        assert isinstance(node, Directory)
        node.sync()

    def lock(self, path: str) -> None:
        """Nobody else is here."""

    def free_bytes(self, path: str) -> int:
        if self.capacity_bytes is None:
            return 1 << 40
        return max(0, self.capacity_bytes - _used_bytes(self._root))

    def total_bytes(self, path: str) -> int:
        return 1 << 40 if self.capacity_bytes is None else self.capacity_bytes

    def modified_ms(self, path: str) -> int:
        return self.inode(path).modified_ms

    def fsync_soon(
        self, files: Sequence[DiskFile], directories: Sequence[str] = ()
    ) -> Awaitable[None]:
        return self._fsync(files, directories)

    async def _fsync(self, files: Sequence[DiskFile], directories: Sequence[str]) -> None:
        await asyncio.sleep(0)
        if self.held is not None:
            await self.held.wait()
        for file in files:
            file.fsync()
        for directory in directories:
            self.sync_dir(directory)


def _cut_file(inode: Inode, random: Random) -> None:
    """Keep what is durable; of what was appended since a prefix, its end perhaps garbage."""
    durable, data = inode.durable, inode.data
    if data[: len(durable)] == durable:
        kept = random.randint(len(durable), len(data))
        survivor = bytearray(data[:kept])
        if kept > len(durable) and random.random() < 0.5:
            torn = random.randint(len(durable), kept)
            survivor[torn:] = bytes(kept - torn)
    else:
        # Rewritten or truncated: all of it, or nothing.
        survivor = bytearray(random.choice((bytes(data), durable)))
    inode.data = survivor
    inode.durable = bytes(survivor)


def _used_bytes(directory: Directory) -> int:
    return sum(
        _used_bytes(node) if isinstance(node, Directory) else len(node.data)
        for node in directory.entries.values()
    )
