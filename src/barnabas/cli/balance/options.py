"""The options of every command that moves replicas."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import click

from barnabas.cli.option_sets import Function, with_options
from barnabas.cli.units import parse_bytes

CONCURRENT_DEFAULT = 50


class RateType(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions only
    """Bytes per second, such as `50MB`."""

    name = "bytes/s"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        try:
            rate = parse_bytes(value.removesuffix("/s"))
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if rate <= 0:
            self.fail("must be more than 0", param, ctx)
        return rate


def move_options(function: Function) -> Function:
    """The options of every command that moves replicas, as the argument `wishes`."""

    def wrapped(
        throttle: int | None, concurrent: int, dry_run: bool, yes: bool, **rest: Any
    ) -> Any:
        return function(wishes=Wishes(throttle, concurrent, dry_run, yes), **rest)

    return with_options(function, wrapped, _OPTIONS)


_OPTIONS: Sequence[Callable[[Any], Any]] = (
    click.option(
        "--throttle",
        type=RateType(),
        metavar="BYTES/S",
        help="Copy at most this much per second and node, such as 50MB.",
    ),
    click.option(
        "--concurrent",
        type=click.IntRange(min=1),
        default=CONCURRENT_DEFAULT,
        show_default=True,
        help="Number of partitions to move at the same time.",
    ),
    click.option("--dry-run", is_flag=True, help="Show the plan; move nothing."),
    click.option("--yes", "-y", is_flag=True, help="Do not ask."),
)


@dataclass(frozen=True, slots=True)
class Wishes:
    """What `move_options` were given."""

    throttle_bytes_per_s: int | None
    concurrent_max: int
    is_dry_run: bool
    is_agreed: bool
