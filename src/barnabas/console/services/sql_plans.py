"""A query's plan as a graph, from what EXPLAIN says: steps, and which reads from which.

Barnabas' SQL server gives the plan as JSON, a tree of steps from the sink to the sources. ksqlDB
gives lines, each indented deeper than the step that reads from it:

     > [ SINK ] | Schema: `CITY` STRING KEY, `TOTAL` BIGINT | Logger: CTAS_TOTALS_1.TOTALS
             > [ AGGREGATE ] | Schema: … | Logger: …
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

STEPS_MAX: Final = 200
"""A plan with more steps, or deeper, is not drawn."""
NAMES_MAX: Final = 3
"""Columns that a step shows; the others are counted."""
_INPUTS: Final = ("source", "left", "right")
_WORD_START: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_LINE: Final = re.compile(r"^(\s*)> \[ ([\w ]+) \](?: \| Schema: (.*?))?(?: \| Logger: .*)?$")
_COLUMN: Final = re.compile(r"`([^`]+)`")
_SOURCE, _SINK = "source", "sink"


@dataclass(frozen=True, slots=True)
class PlanStep:
    """A step; `inputs` are the places of the steps that it reads from, which come before it."""

    kind: str
    """`source`, `sink` or `step`."""
    title: str
    detail: str
    inputs: tuple[int, ...]


def plan_of(text: str, sink: str | None) -> tuple[PlanStep, ...]:
    """The steps of an execution plan, sources first; none where the text is not understood."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return _of_lines(text.splitlines(), sink)
    plan = found.get("plan") if isinstance(found, dict) else None
    root = plan.get("step") if isinstance(plan, dict) else None
    steps: list[PlanStep] = []
    if not isinstance(root, dict) or _add_tree(root, sink, steps, 1) is None:
        return ()
    return tuple(steps)


def _add_tree(
    root: Mapping[str, Any], sink: str | None, steps: list[PlanStep], depth: int
) -> int | None:
    """Add a step after those that it reads from; returns its place, None if there are too many."""
    if depth > STEPS_MAX:
        return None
    inputs = []
    for child in (root[name] for name in _INPUTS if isinstance(root.get(name), dict)):
        place = _add_tree(child, sink, steps, depth + 1)
        if place is None:
            return None
        inputs.append(place)
    if len(steps) >= STEPS_MAX:
        return None
    name = str(root.get("is", "?"))
    kind = _kind(name, bool(inputs))
    title = _WORD_START.sub(" ", name).capitalize()
    steps.append(PlanStep(kind, title, _detail(kind, root, sink), tuple(inputs)))
    return len(steps) - 1


def _kind(name: str, has_inputs: bool) -> str:
    if not has_inputs:
        return _SOURCE
    return _SINK if name.lower().endswith(_SINK) else "step"


def _detail(kind: str, step: Mapping[str, Any], sink: str | None) -> str:
    if kind == _SOURCE:
        return str(step.get("topic", ""))
    if kind == _SINK:
        return sink or ""
    functions = _named(step.get("functions"))
    if functions:
        return _names(list(dict.fromkeys(functions)))
    if isinstance(step.get("kind"), str):  # of a join
        return str(step["kind"])
    schema = step.get("schema")
    return _names(_named(schema.get("columns") if isinstance(schema, dict) else None))


def _named(found: Any) -> list[str]:
    """The names of the objects in a list of JSON; none where it is something else."""
    members = found if isinstance(found, list) else []
    return [str(one.get("name")) for one in members if isinstance(one, dict)]


def _of_lines(lines: Sequence[str], sink: str | None) -> tuple[PlanStep, ...]:
    """The steps of ksqlDB's text: a line's inputs are the deeper ones that follow it."""
    found = list(_read(lines))
    if len(found) > STEPS_MAX:
        return ()
    children: dict[int, list[int]] = {}
    above: list[tuple[int, int]] = []
    for place, (depth, _, _) in enumerate(found):
        while above and above[-1][0] >= depth:
            above.pop()
        if above:
            children.setdefault(above[-1][1], []).append(place)
        above.append((depth, place))
    last = len(found) - 1
    steps = []
    for place in reversed(range(len(found))):  # inputs come first then
        _, name, columns = found[place]
        kind = _kind(name, place in children)
        detail = (sink or "") if kind == _SINK else _names(columns)
        inputs = tuple(last - one for one in children.get(place, ()))
        steps.append(PlanStep(kind, name.replace("_", " ").capitalize(), detail, inputs))
    return tuple(steps)


def _read(lines: Sequence[str]) -> Iterator[tuple[int, str, list[str]]]:
    for line in lines:
        match = _LINE.match(line)
        if match is not None:
            yield len(match[1]), match[2], _COLUMN.findall(match[3] or "")


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(names[:NAMES_MAX])
    more = len(names) - NAMES_MAX
    return f"{shown} and {more} more" if more > 0 else shown
