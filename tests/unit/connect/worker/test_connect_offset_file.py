"""The offsets of standalone mode are kept in the file that Kafka's worker reads and writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.connect.worker.offset_file import OffsetFile, decode, encode
from barnabas.schemas.data.errors import ConnectError

# Written by Java 17: an ObjectOutputStream, a HashMap<byte[], byte[]> of three entries.
JAVA_FILE = bytes.fromhex(
    "aced0005737200116a6176612e7574696c2e486173684d61700507dac1c31660d103000246000a6c6f6164466163"
    "746f724900097468726573686f6c6478703f4000000000000c77080000001000000003757200025b42acf317f806"
    "0854e00200007870000000185b226330222c7b2266696c656e616d65223a222f78227d5d7571007e00020000000e"
    "7b22706f736974696f6e223a307d7571007e0002000000185b226331222c7b2266696c656e616d65223a222f7822"
    "7d5d707571007e0002000000185b226332222c7b2266696c656e616d65223a222f78227d5d7571007e0002000000"
    "0e7b22706f736974696f6e223a327d78"
)
ENTRIES = {
    b'["c0",{"filename":"/x"}]': b'{"position":0}',
    b'["c1",{"filename":"/x"}]': None,
    b'["c2",{"filename":"/x"}]': b'{"position":2}',
}


def test_the_file_is_javas_byte_by_byte() -> None:
    assert decode(JAVA_FILE, "f") == ENTRIES
    assert encode(ENTRIES) == JAVA_FILE


def test_any_number_of_entries_comes_back() -> None:
    for count in (0, 1, 12, 13, 500):
        entries: dict[bytes, bytes | None] = {b"%d" % n: b"x" * n for n in range(count)}
        assert decode(encode(entries), "f") == entries


def test_every_cut_and_foreign_file_is_told() -> None:
    for end in range(len(JAVA_FILE)):
        with pytest.raises(ConnectError, match="is not a file of offsets"):
            decode(JAVA_FILE[:end], "f")
    with pytest.raises(ConnectError, match="unexpected data at byte 0"):
        decode(b"{}", "f")


def test_offsets_are_kept_per_connector(tmp_path: Path) -> None:
    path = tmp_path / "offsets"
    path.write_bytes(JAVA_FILE)
    file = OffsetFile(str(path))
    file.load()
    assert file.reader("c1").all() == []
    assert file.reader("c2").offset({"filename": "/x"}) == {"position": 2}
    file.put("c2", [({"filename": "/x"}, {"position": 9}), ({"filename": "/y"}, {"position": 1})])
    file.put("c0", [({"filename": "/x"}, None)])
    again = OffsetFile(str(path))
    again.load()
    assert again.reader("c2").all() == [
        ({"filename": "/x"}, {"position": 9}),
        ({"filename": "/y"}, {"position": 1}),
    ]
    assert again.reader("c0").offset({"filename": "/x"}) is None


def test_a_missing_file_is_empty_and_a_lost_folder_an_error(tmp_path: Path) -> None:
    file = OffsetFile(str(tmp_path / "none" / "offsets"))
    file.load()
    assert file.reader("c").all() == []
    with pytest.raises(ConnectError, match="cannot write the offsets"):
        file.put("c", [({}, {})])
