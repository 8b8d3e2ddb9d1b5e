"""CREATE OR REPLACE: whether a new plan can take over the state of the running one.

Filters and selections may come and go. All other steps must be there in both plans, in the same
order and with the same facts about their state; of some, ksqlDB allows no change at all.
"""

from __future__ import annotations

from barnabas.sql.errors import AnalysisError
from barnabas.sql.plan import steps
from barnabas.sql.plan.steps import Step

_PASSIVE = (steps.Filter, steps.Select)
_MUST_MATCH: dict[type, tuple[str, ...]] = {
    steps.StreamSink: ("formats", "topic", "timestamp"),
    steps.TableSink: ("formats", "topic", "timestamp"),
    steps.StreamSource: ("topic", "formats", "timestamp", "window"),
    steps.TableSource: ("topic", "formats", "timestamp", "window"),
    steps.StreamSelectKey: ("expressions",),
    steps.TableSelectKey: ("expressions",),
    steps.StreamGroupBy: ("expressions",),
    steps.StreamGroupByKey: (),
    steps.StreamAggregate: ("kept", "functions"),
}


def check_plan_upgrade(old: Step, new: Step) -> None:
    """Raise AnalysisError unless `new` can go on where `old` stopped."""
    if old == new:
        return
    before, after = _acting(old), _acting(new)
    kind = type(before)
    if kind not in _MUST_MATCH:
        raise AnalysisError(f"Upgrades not yet supported for {kind.__name__}")
    if type(after) is not kind:
        raise AnalysisError(
            f"Query is not upgradeable. Plan step of type {kind.__name__} must have matching "
            f"class. Values differ: {kind.__name__} vs. {type(after).__name__}"
        )
    for name in _MUST_MATCH[kind]:
        values = getattr(before, name), getattr(after, name)
        if values[0] != values[1]:
            raise AnalysisError(
                f"Query is not upgradeable. Plan step of type {kind.__name__} must have matching "
                f"{name}. Values differ: {values[0]} vs. {values[1]}"
            )
    below = getattr(before, "source", None)
    if below is not None:
        check_plan_upgrade(below, after.source)  # type: ignore[union-attr]  # of the same class


def _acting(step: Step) -> Step:
    """The step itself, or the first one below that may not go."""
    while isinstance(step, _PASSIVE):
        step = step.source
    return step
