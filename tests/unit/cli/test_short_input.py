"""`barnabas produce` sends short input without waiting for an idempotent producer's start."""

import os
from pathlib import Path
from typing import Any, BinaryIO
from unittest import mock

import pytest

from barnabas.cli.connection import Connection
from barnabas.cli.records import produce as short_input
from barnabas.cli.records.produce import SHORT_SIZE_BYTES_MAX, are_short, read_ahead
from barnabas.cli.records.sender import Sender


def _pipe(content: bytes) -> tuple[BinaryIO, int]:
    reader, writer = os.pipe()
    os.write(writer, content)
    return os.fdopen(reader, "rb"), writer


def test_a_pipe_that_has_ended_is_short() -> None:
    source, writer = _pipe(b"a\nb")
    os.close(writer)
    with source:
        found, is_short = read_ahead(source)
        assert (found.read(), is_short) == (b"a\nb", True)


def test_a_pipe_that_stays_open_is_long_and_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(short_input, "READ_AHEAD_WAIT_S", 0)
    source, writer = _pipe(b"a\nb")
    with source:
        found, is_short = read_ahead(source)
        assert not is_short
        assert found.readline() == b"a\n"  # does not wait for more
        os.write(writer, b"c\nd")
        os.close(writer)
        assert list(found) == [b"bc\n", b"d"]


@pytest.mark.parametrize("size", [0, 1, SHORT_SIZE_BYTES_MAX, SHORT_SIZE_BYTES_MAX + 1, 2**20])
def test_a_file_is_short_by_its_size(tmp_path: Path, size: int) -> None:
    path = tmp_path / "input"
    content = os.urandom(size)
    path.write_bytes(content)
    with path.open("rb") as file:
        found, is_short = read_ahead(file)
        assert found.read() == content
    assert is_short == are_short([str(path)]) == (size <= SHORT_SIZE_BYTES_MAX)


def test_files_are_short_together_and_pipes_never(tmp_path: Path) -> None:
    path = tmp_path / "input"
    path.write_bytes(bytes(SHORT_SIZE_BYTES_MAX))
    assert not are_short([str(path), __file__])
    os.mkfifo(tmp_path / "pipe")
    assert not are_short([str(tmp_path / "pipe")])


@pytest.mark.parametrize(
    ("is_short", "acks", "options", "is_idempotent"),
    [
        (True, "all", {}, False),
        (False, "all", {}, True),
        (False, "1", {}, False),
        (False, "all", {"acks": "1"}, False),
        (False, "all", {"request.required.acks": "0"}, False),
        (False, "1", {"acks": "-1"}, True),
        (False, "all", {"enable.idempotence": "false"}, False),
        (False, "1", {"enable.idempotence": "true"}, True),
        (True, "all", {"enable.idempotence": "true"}, True),
    ],
)
def test_long_input_to_all_replicas_is_sent_idempotently(
    is_short: bool, acks: str, options: dict[str, str], is_idempotent: bool
) -> None:
    given: dict[str, Any] = {}
    with mock.patch("barnabas.kafka.ordered_producer.OrderedProducer", given.update):
        Sender(Connection("none:1", options, 1.0), "topic", acks, "none", is_short=is_short)
    assert (str(given.get("enable.idempotence", False)).lower() == "true") == is_idempotent


def test_long_input_can_be_sent_with_the_acks_of_an_option() -> None:
    Sender(Connection("localhost:1", {"acks": "1"}, 1.0), "topic", "all", "none", is_short=False)
