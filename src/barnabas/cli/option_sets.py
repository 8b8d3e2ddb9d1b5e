"""Sets of options that several commands have, given to each as one argument."""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def option_set(*options: Callable[[Any], Any]) -> Callable[[Function], Function]:
    """A decorator that gives a command several options, in this order."""
    return lambda function: reduce(lambda made, option: option(made), reversed(options), function)


def with_options(
    function: Function, wrapped: Callable[..., Any], options: Sequence[Callable[[Any], Any]]
) -> Function:
    """`wrapped`, which calls `function`, in its place: `options` come before its own."""
    wrapped.__doc__ = function.__doc__
    wrapped.__name__ = function.__name__
    wrapped.__click_params__ = getattr(function, "__click_params__", [])  # type: ignore[attr-defined]  # click collects options there
    for option in reversed(options):
        wrapped = option(wrapped)
    return wrapped  # type: ignore[return-value]  # the wrapper takes what click passes
