"""The states of a classic group against Kafka's own list of allowed predecessors."""

from pathlib import Path
from typing import Any

import pytest

from barnabas.node.coordinator.group.classic.states import (
    TRANSITIONS,
    GroupEvent,
    GroupState,
    diagram,
    next_state,
)

PREDECESSORS = {
    GroupState.EMPTY: {GroupState.PREPARING_REBALANCE},
    GroupState.PREPARING_REBALANCE: {
        GroupState.STABLE,
        GroupState.COMPLETING_REBALANCE,
        GroupState.EMPTY,
    },
    GroupState.COMPLETING_REBALANCE: {GroupState.PREPARING_REBALANCE},
    GroupState.STABLE: {GroupState.COMPLETING_REBALANCE},
    GroupState.DEAD: {
        GroupState.STABLE,
        GroupState.PREPARING_REBALANCE,
        GroupState.COMPLETING_REBALANCE,
        GroupState.EMPTY,
    },
}


def test_the_table_allows_what_kafka_allows():
    found: dict[GroupState, set[Any]] = {state: set() for state in GroupState}
    for (state, _), target in TRANSITIONS.items():
        found[target].add(state)
    assert found == PREDECESSORS


@pytest.mark.parametrize("state", GroupState)
@pytest.mark.parametrize("event", GroupEvent)
def test_a_pair_that_is_not_listed_raises(state, event):
    if (state, event) in TRANSITIONS:
        assert next_state(state, event) is TRANSITIONS[state, event]
    else:
        with pytest.raises(AssertionError):
            next_state(state, event)


def test_the_documentation_shows_the_diagram():
    page = Path(__file__).resolve().parents[4] / "docs" / "groups.md"
    assert f"```mermaid\n{diagram()}```" in page.read_text()


def test_the_diagram_shows_every_transition():
    lines = diagram().splitlines()
    assert lines[0] == "stateDiagram-v2"
    for (state, event), target in TRANSITIONS.items():
        assert f"    {state} --> {target}: {event}" in lines
