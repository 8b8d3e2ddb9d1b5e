"""Ordered stores over a host's plain map of bytes, such as Spark's MapState.

Each call to such a map crosses to another process (some 55 µs), so entries are not kept one by one:
a store is a B+ tree whose nodes are pages of a few kilobytes. A batch reads each page that it needs
once, works on it in memory, and writes each page that has changed once, in `flush`. Neighbours in
order, such as all keys of one window, share pages: a range costs a call per page, not per entry.

    root (level 1):  first keys of children, their ids       page "name\\0" + id -> bytes
    leaves (level 0): encoded keys, values

Pages grow without bounds in memory and are split when they are written. Empty ones are removed;
half-empty ones stay: windows leave in the order in which they came, whole pages at a time.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final, Protocol

from barnabas.sql.runtime.rows_encoding import (
    decode_key,
    decode_numbers,
    encode_key,
    encode_keys,
    encode_number,
    pack,
    unpack,
)

PAGE_BYTES_MAX: Final = 4_000
"""A page that is longer is split in two, unless it has one entry."""
NODES_KEPT_MAX: Final = 20_000
"""So many pages of a store stay in memory between batches; then it starts over."""
ENTRIES_PER_KEY_MAX: Final = 4
"""A batch that asks for fewer keys than a quarter of the entries in memory looks each up."""

_ROOT: Final = 0

Key = tuple[Any, ...]


class Pages(Protocol):
    """A map of bytes to bytes."""

    def get(self, key: bytes) -> bytes | None: ...

    def put(self, key: bytes, data: bytes) -> None: ...

    def remove(self, key: bytes) -> None: ...


class _Node:
    """A page in memory: a leaf's entries, or the children of an inner node.

    `keys` are sorted. A leaf has `values` by key; an inner node has child ids beside its keys,
    each the lower bound of its child's keys (the first child's is not looked at).
    """

    __slots__ = ("children", "is_dirty", "keys", "values")

    def __init__(
        self, keys: list[bytes], values: dict[bytes, Any] | None, children: list[int] | None
    ) -> None:
        self.keys = keys
        self.values = values
        self.children = children
        self.is_dirty = False


class PagedStore:
    """A runtime Store whose pages lie in `pages`, under keys that begin with the store's name.

    `pages` may be replaced between batches by another view of the same map.
    """

    def __init__(self, name: str, pages: Pages) -> None:
        self.pages = pages
        self._prefix = name.encode() + b"\x00"
        self._nodes: dict[int, _Node] = {}
        self._next_id = self._written_next_id = _ROOT + 1
        self.is_dirty = False
        """True if there is something to write."""

    def get(self, key: Key) -> Any:
        encoded = encode_key(key)
        values = self._leaf(encoded).values
        assert values is not None
        return values.get(encoded)

    def get_all(self, keys: Sequence[Key]) -> list[Any]:
        encoded = encode_keys(keys)
        loaded = [node.values for node in self._nodes.values() if node.values]
        if sum(map(len, loaded)) > ENTRIES_PER_KEY_MAX * len(keys):
            return [values.get(key) for key, _, values in self._leaves(encoded)]
        # To put all entries together takes less time than to go down to many leaves.
        entries: dict[bytes, Any] = {}
        for values in loaded:
            entries.update(values)
        found = list(map(entries.get, encoded))
        missing = [place for place, value in enumerate(found) if value is None]
        leaves = self._leaves([encoded[place] for place in missing])
        for place, (key, _, values) in zip(missing, leaves, strict=True):
            found[place] = values.get(key)
        return found

    def _leaves(self, keys: Sequence[bytes]) -> Iterator[tuple[bytes, _Node, dict[bytes, Any]]]:
        """Each key with the leaf where it belongs, and that one's values."""
        root, nodes = self._node(_ROOT), self._nodes
        for encoded in keys:
            node = root
            while (children := node.children) is not None:  # as `_leaf`, without its calls
                number = children[bisect_right(node.keys, encoded, 1) - 1]
                node = nodes.get(number) or self._node(number)
            values = node.values
            assert values is not None
            yield encoded, node, values

    def put(self, key: Key, value: Any) -> None:
        encoded = encode_key(key)
        leaf = self._leaf(encoded)
        values = leaf.values
        assert values is not None
        if value is None:
            if values.pop(encoded, None) is None:
                return
            del leaf.keys[bisect_left(leaf.keys, encoded)]
        else:
            if encoded not in values:
                insort(leaf.keys, encoded)
            values[encoded] = value
        leaf.is_dirty = self.is_dirty = True

    def put_all(self, keys: Sequence[Key], values: Sequence[Any]) -> None:
        more: dict[int, tuple[_Node, list[bytes]]] = {}
        for (encoded, leaf, of_leaf), value in zip(
            self._leaves(encode_keys(keys)), values, strict=True
        ):
            if value is None:
                if of_leaf.pop(encoded, None) is None:
                    continue
                del leaf.keys[bisect_left(leaf.keys, encoded)]
            else:
                if encoded not in of_leaf:
                    more.setdefault(id(leaf), (leaf, []))[1].append(encoded)
                of_leaf[encoded] = value
            leaf.is_dirty = self.is_dirty = True
        for leaf, added in more.values():
            # Together: a leaf may take a whole table, and each insertion moves what is behind it.
            leaf.keys += added
            leaf.keys.sort()

    def range(self, low: Key, high: Key) -> Iterator[tuple[Key, Any]]:
        first, last = encode_key(low), encode_key(high)
        return iter([(decode_key(key), value) for key, value in self._between(first, last)])

    def numbered(
        self, head: Key, keys: Sequence[Key], lows: Sequence[int], highs: Sequence[int]
    ) -> list[list[tuple[int, int, Any]]]:
        start = encode_key(head)
        prefixes = [start + key for key in encode_keys(keys)]
        firsts = [prefix + encode_number(low) for prefix, low in zip(prefixes, lows, strict=True)]
        found = []
        for (first, leaf, values), prefix, high in zip(
            self._leaves(firsts), prefixes, highs, strict=True
        ):
            last = prefix + encode_number(high + 1)
            at = bisect_left(leaf.keys, first)
            end = bisect_left(leaf.keys, last, at)
            entries = [(place, values[place]) for place in leaf.keys[at:end]]
            if end == len(leaf.keys):  # they may go on in the next leaf
                entries = self._between(first, last)
            size = len(prefix)
            found.append([(*decode_numbers(place, size), value) for place, value in entries])
        return found

    def _between(self, first: bytes, last: bytes) -> list[tuple[bytes, Any]]:
        entries: list[tuple[bytes, Any]] = []
        if first < last:
            self._collect(self._node(_ROOT), first, last, entries)
        return entries

    def _collect(
        self, node: _Node, first: bytes, last: bytes, found: list[tuple[bytes, Any]]
    ) -> None:
        keys = node.keys
        if node.children is None:
            values = node.values
            assert values is not None
            wanted = keys[bisect_left(keys, first) : bisect_left(keys, last)]
            found.extend([(key, values[key]) for key in wanted])
            return
        for place in range(_child_place(keys, first), max(1, bisect_left(keys, last))):
            self._collect(self._node(node.children[place]), first, last, found)

    def _leaf(self, encoded: bytes) -> _Node:
        node = self._node(_ROOT)
        while node.children is not None:
            node = self._node(node.children[_child_place(node.keys, encoded)])
        return node

    def _node(self, number: int) -> _Node:
        node = self._nodes.get(number)
        if node is None:
            node = self._nodes[number] = self._read(number)
        return node

    def _read(self, number: int) -> _Node:
        data = self.pages.get(self._page_key(number))
        if data is None:
            assert number == _ROOT, f"page {number} of {self._prefix!r} is lost"
            return _Node([], {}, None)
        next_id, keys, children, values = unpack(data)
        if number == _ROOT:
            self._next_id = self._written_next_id = next_id
        if children is not None:
            return _Node(keys, None, children)
        return _Node(keys, dict(zip(keys, values, strict=True)), None)

    def _page_key(self, number: int) -> bytes:
        return self._prefix + number.to_bytes(8, "big")

    # --- writing -----------------------------------------------------------------------------

    def flush(self) -> None:
        """Write the pages that have changed, splitting those that are too long."""
        if self.is_dirty:
            self._flush_root()
            self.is_dirty = False
        if len(self._nodes) > NODES_KEPT_MAX:
            self._nodes.clear()

    def _flush_root(self) -> None:
        root = self._node(_ROOT)
        self._flush_children(root)
        if not root.is_dirty and self._next_id == self._written_next_id:
            return
        data = self._encode(root, self._next_id)
        while len(data) > PAGE_BYTES_MAX and len(root.keys) > 1:
            # The root keeps its id: what it held moves to new nodes below it.
            moved = _Node(root.keys, root.values, root.children)
            split = self._write_split(moved, self._new_id())
            root.keys = [key for key, _ in split]
            root.children, root.values = [number for _, number in split], None
            data = self._encode(root, self._next_id)
        self.pages.put(self._page_key(_ROOT), data)
        root.is_dirty, self._written_next_id = False, self._next_id

    def _flush_children(self, node: _Node) -> None:
        """Write what lies below a node, and take in what became of its children."""
        if node.children is None:
            return
        kept: list[tuple[bytes, int]] = []
        is_changed = False
        for key, number in zip(node.keys, node.children, strict=True):
            child = self._nodes.get(number)
            if child is None:
                kept.append((key, number))
                continue
            self._flush_children(child)
            if not child.is_dirty:
                kept.append((key, number))
                continue
            if not child.keys:
                self.pages.remove(self._page_key(number))
                del self._nodes[number]
                is_changed = True
                continue
            split = self._write_split(child, number)
            # The key of its first part stays: keys below its first may still come.
            kept += [(key, split[0][1]), *split[1:]]
            is_changed = is_changed or len(split) > 1
        if is_changed:
            node.keys = [key for key, _ in kept]
            node.children = [number for _, number in kept]
            node.is_dirty = True
            if not kept:
                node.children, node.values = None, {}

    def _write_split(self, node: _Node, number: int) -> list[tuple[bytes, int]]:
        """Write a node in as many pages as it needs: (first key, id) of each."""
        data = self._encode(node, 0)
        if len(data) <= PAGE_BYTES_MAX or len(node.keys) == 1:
            self.pages.put(self._page_key(number), data)
            node.is_dirty = False
            self._nodes[number] = node
            return [(node.keys[0], number)]
        pieces = min(len(node.keys), 2 * len(data) // PAGE_BYTES_MAX)
        places = [len(node.keys) * piece // pieces for piece in range(pieces + 1)]
        written = []
        for piece, (start, stop) in enumerate(pairwise(places)):
            part = _part(node, start, stop)
            written += self._write_split(part, number if piece == 0 else self._new_id())
        return written

    def _new_id(self) -> int:
        self._next_id += 1
        return self._next_id - 1

    def _encode(self, node: _Node, next_id: int) -> bytes:
        values = node.values
        listed = None if values is None else [values[key] for key in node.keys]
        return pack((next_id, node.keys, node.children, listed))


def _part(node: _Node, start: int, stop: int) -> _Node:
    keys = node.keys[start:stop]
    if node.children is not None:
        return _Node(keys, None, node.children[start:stop])
    assert node.values is not None
    return _Node(keys, {key: node.values[key] for key in keys}, None)


def _child_place(keys: list[bytes], encoded: bytes) -> int:
    return bisect_right(keys, encoded, 1) - 1  # the first child takes all that is before it, too
