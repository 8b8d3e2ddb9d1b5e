"""Signals that cannot be understood are passed over; tables that are not there are asked for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from barnabas.connect.cdc.signals import Signal, request_of, signal_of
from barnabas.connect.cdc.steps import Asked, StopAsked

DEEP = "[" * 100_000
CAPTURED = ["public.a", "public.b"]


def asked(kind: str, data: Any) -> Any:
    return request_of(
        Signal("s", kind, data if isinstance(data, str) else json.dumps(data)), CAPTURED
    )


@pytest.mark.parametrize("text", ["", " ", "{", "5", "null", "[]", '{"id": "1"}', DEEP])
def test_texts_that_are_no_signals(text: str) -> None:
    assert signal_of(text) is None


@pytest.mark.parametrize(
    "data",
    [
        *("", "{", "5", DEEP, {}, {"data-collections": 5}, {"data-collections": [5]}),
        {"data-collections": ["public.a"], "type": "other"},
        {"data-collections": ["("]},
        {"data-collections": ["public.a"], "surrogate-key": 5},
        {"data-collections": ["public.a"], "additional-conditions": 5},
        {"data-collections": ["public.a"], "additional-conditions": ["x"]},
    ],
)
def test_snapshots_that_cannot_be_understood(data: Any) -> None:
    assert asked("execute-snapshot", data) is None


def test_tables_of_a_snapshot() -> None:
    names = ["public.nothing", "public..", "public.a"]
    found = asked("execute-snapshot", {"data-collections": names})
    assert isinstance(found, Asked)
    assert [one.table for one in found.tables] == ["public.nothing", "public.a", "public.b"]
    assert asked("stop-snapshot", {"data-collections": names[:1]}) == StopAsked((names[0],))
    assert asked("other", {}) is None
