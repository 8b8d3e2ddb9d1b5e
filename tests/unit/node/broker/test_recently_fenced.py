"""Which brokers clients hear of."""

from __future__ import annotations

from dataclasses import replace

import pytest

from barnabas.base.ids import Uuid
from barnabas.node.broker.recently_fenced import RecentlyFencedBrokers
from barnabas.node.metadata.image import BrokerImage, MetadataImage
from barnabas.node.metadata.replay import ImageDelta
from sim.manual_clock import ManualClock

SESSION_MS = 9_000
ALIVE = BrokerImage(7, 1, Uuid(bytes(16)), {}, None, False, False, ())
FENCED = replace(ALIVE, fenced=True)
LEAVING = replace(ALIVE, in_controlled_shutdown=True)
GONE = replace(LEAVING, fenced=True)

EXPIRED = "expired"
Step = BrokerImage | int | str | None
"""The broker as it is now (None: unregistered), milliseconds that pass, its session's end."""


@pytest.mark.parametrize(
    ("first", "steps", "named"),
    [
        (ALIVE, [], True),
        (FENCED, [], False),
        (ALIVE, [FENCED], True),
        (ALIVE, [FENCED, SESSION_MS - 1], True),
        (ALIVE, [FENCED, SESSION_MS], False),
        (ALIVE, [FENCED, 5_000, FENCED, 4_000], False),  # registered again: no new session
        (ALIVE, [FENCED, SESSION_MS, ALIVE], True),
        (ALIVE, [FENCED, SESSION_MS, ALIVE, FENCED, SESSION_MS - 1], True),
        (ALIVE, [LEAVING], True),
        (ALIVE, [LEAVING, GONE], False),  # it has said so
        (ALIVE, [LEAVING, ALIVE, FENCED], True),
        (None, [FENCED], False),
        (None, [FENCED, ALIVE, FENCED], True),
        (ALIVE, [FENCED, None, FENCED], False),
        (ALIVE, [EXPIRED], False),  # its session has lasted already
        (ALIVE, [EXPIRED, FENCED], False),
        (ALIVE, [FENCED, EXPIRED], False),
        (ALIVE, [EXPIRED, ALIVE], True),
        (ALIVE, [EXPIRED, ALIVE, FENCED], True),
    ],
)
def test_who_is_named(first: BrokerImage | None, steps: list[Step], named: bool) -> None:
    clock = ManualClock()
    lost = RecentlyFencedBrokers(clock, SESSION_MS)
    lost.load(MetadataImage(brokers={} if first is None else {7: first}))
    broker = first
    for step in steps:
        if isinstance(step, int):
            clock.advance(step)
            continue
        delta = ImageDelta(MetadataImage())
        if isinstance(step, str):
            delta.expired_brokers.add(7)
            step = FENCED
        delta.brokers[7] = broker = step
        lost.image_changed(delta)
    assert broker is not None
    assert lost.is_named(broker) is named
