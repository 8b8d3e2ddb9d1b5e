"""Assignors of consumer groups."""

from collections.abc import Callable, Mapping
from typing import Final

from barnabas.node.coordinator.group.consumer.assignors.range import assign_ranges
from barnabas.node.coordinator.group.consumer.assignors.spec import Assignment, GroupSpec
from barnabas.node.coordinator.group.consumer.assignors.uniform import assign_uniformly

ASSIGNORS: Final[Mapping[str, Callable[[GroupSpec], Assignment]]] = {
    "uniform": assign_uniformly,
    "range": assign_ranges,
}
"""By the name in requests and in `group.consumer.assignors`."""
