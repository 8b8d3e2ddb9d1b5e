"""Searches wait for pages, though not for ever."""

from __future__ import annotations

import contextlib
import json
import threading
from typing import Any
from unittest import mock

import pytest

from barnabas.console.services import messages
from barnabas.console.services.cluster import EARLIEST, ClusterService, View
from barnabas.console.services.decoding import Decoder
from barnabas.console.services.expressions import compile_expression
from barnabas.console.services.messages import MessageService, Progress, Start
from barnabas.console.services.right_of_way import RightOfWay
from support.console_world import console
from support.node_process import wait_until


def test_long_work_waits_for_short_work() -> None:
    ways = RightOfWay(wait_s=60.0)
    ways.give_way()  # nobody is on the way
    went = threading.Event()

    def go() -> None:
        ways.give_way()
        went.set()

    thread = threading.Thread(target=go)
    with ways.short():
        with ways.short():
            thread.start()
            waiters = ways._changed._waiters  # type: ignore[attr-defined]
            wait_until(lambda: len(waiters) == 1, "the thread to wait")
        assert not went.is_set()
    assert went.wait(60)
    thread.join()


def test_long_work_goes_on_while_short_work_never_ceases() -> None:
    ways = RightOfWay(wait_s=0.0)
    with ways.short():
        ways.give_way()
        with contextlib.suppress(ValueError), ways.short():
            raise ValueError
        ways.give_way()
    assert ways._short == 0


class Consumer:
    """A consumer of one partition, in batches of two."""

    def __init__(self, values: list[bytes]) -> None:
        self._values, self._at = values, 0

    def assign(self, _: Any) -> None:
        """Nothing."""

    incremental_unassign = assign

    def consume(self, *_: Any) -> list[Any]:
        found = []
        for offset in range(self._at, min(self._at + 2, len(self._values))):
            one = mock.Mock()
            one.error.return_value = one.headers.return_value = one.key.return_value = None
            one.partition.return_value, one.offset.return_value = 0, offset
            one.timestamp.return_value = (1, 0)
            one.value.return_value = self._values[offset]
            found.append(one)
        self._at += len(found)
        return found


@pytest.mark.parametrize(("text", "decoded"), [("value.id >= 3", 5), ('value.city == "Ghent"', 2)])
def test_a_search_gives_way_after_each_batch_and_decodes_what_may_match(
    text: str, decoded: int
) -> None:
    cities = ("Lyon", "Porto", "Turin", "Ghent", "Ghent")
    values = [json.dumps({"id": n, "city": city}).encode() for n, city in enumerate(cities)]
    cluster, ways, decoder = mock.Mock(), mock.Mock(), Decoder(None)
    cluster.topic.return_value.partitions = [mock.Mock(number=0)]
    cluster.offsets.side_effect = lambda _, at: {("t", 0): 0 if at == EARLIEST else 5}
    service = MessageService(cluster, decoder, ways)
    consumer = contextlib.nullcontext(Consumer(values))
    with (
        mock.patch.object(service, "_consumer", return_value=consumer),
        mock.patch.object(decoder, "value", wraps=decoder.value) as value,
    ):
        found = list(
            service.search("t", compile_expression(text), Start("oldest"), threading.Event())
        )
    *records, last = (one for one in found if not (isinstance(one, Progress) and not one.is_done))
    assert [one.offset for one in records if isinstance(one, messages.Record)] == [3, 4]
    assert isinstance(last, Progress)
    assert (last.scanned, last.matches) == (5, 2)
    assert value.call_count == decoded
    assert ways.give_way.call_count == 3


def test_a_page_is_short_work_while_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []
    ways: list[RightOfWay] = []
    make = RightOfWay.__init__

    def made(self: RightOfWay, *given: Any) -> None:
        make(self, *given)
        ways.append(self)

    def view(_: Any) -> View:
        counts.append(ways[0]._short)
        return View("id", 1, {}, {})

    monkeypatch.setattr(RightOfWay, "__init__", made)
    monkeypatch.setattr(ClusterService, "view", view)
    with console({"bootstrap.servers": "127.0.0.1:1"}) as page:
        page.get("topics")
    assert counts[0] == 1
    assert ways[0]._short == 0
