"""Responses that come later: what is done to a promise, or to a value that is there already."""

from collections.abc import Callable
from typing import Any, TypeVar

from barnabas.base.promise import Promise

__all__ = ["Promise", "flat", "gather", "then"]

R = TypeVar("R")
T = TypeVar("T")


def then(response: R | Promise[R], change: Callable[[R], T]) -> T | Promise[T]:
    """Apply `change` to a response now or when it is there."""
    if not isinstance(response, Promise):
        return change(response)
    changed: Promise[T] = Promise()
    response.then(lambda value: changed.settle(change(value)))
    return changed


def flat(response: R | Promise[R], change: Callable[[R], T | Promise[T]]) -> T | Promise[T]:
    """As `then`, for a change that may itself take time."""
    if not isinstance(response, Promise):
        return change(response)
    changed: Promise[T] = Promise()

    def arrived(value: R) -> None:
        later = change(value)
        if isinstance(later, Promise):
            later.then(changed.settle)
        else:
            changed.settle(later)

    response.then(arrived)
    return changed


def gather(parts: list[Any], combine: Callable[[list[Any]], R]) -> R | Promise[R]:
    """Combine results, waiting for those that are promises."""
    missing = [part for part in parts if isinstance(part, Promise)]
    if not missing:
        return combine(parts)
    results = list(parts)
    left = len(missing)
    combined: Promise[R] = Promise()

    def arrive(index: int, value: Any) -> None:
        nonlocal left
        results[index] = value
        left -= 1
        if not left:
            combined.settle(combine(results))

    for index, part in enumerate(parts):
        if isinstance(part, Promise):
            part.then(lambda value, index=index: arrive(index, value))  # type: ignore[misc]  # mypy cannot infer a default
    return combined
