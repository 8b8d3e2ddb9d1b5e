"""What it takes to plant a defect: a patch that can be undone, and where it is looked for."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sim.plan import Plan


class Patch:
    """Replaces attributes, and puts them back."""

    def __init__(self) -> None:
        self._replaced: list[tuple[Any, str, Any]] = []

    def set(self, owner: Any, name: str, value: Any) -> None:
        """Give `owner.name` another value."""
        self._replaced.append((owner, name, owner.__dict__[name]))
        setattr(owner, name, value)

    def undo(self) -> None:
        """Put everything back, the last first."""
        while self._replaced:
            owner, name, value = self._replaced.pop()
            setattr(owner, name, value)


@dataclass(frozen=True, slots=True)
class Mutation:
    """One planted defect."""

    name: str
    breaks: str
    """The rule that no longer holds."""
    plant: Callable[[Patch], None]
    seeds_max: int
    """It is found within this many seeds, counted from 0."""
    topology: str = ""
    kinds: tuple[str, ...] = ()
    """The faults to try it with; none: those that the seed draws."""
    adjust: Callable[[Plan], None] | None = None
    """Makes the situation likely in which the rule matters."""
    workload: str = ""
    seen_as: str = ""
    """The anomaly by which it must be found; any where this is empty."""
