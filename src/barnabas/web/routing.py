"""Finds the handler of a path and a method: a tree over the raw segments of paths.

Words are looked up in a dict, other segments are parameters: there are no regular expressions, and
only segments that are used are decoded. Empty segments are ignored.
"""

from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar

Handler = TypeVar("Handler")


def segments(raw_path: bytes) -> list[bytes]:
    """The segments of a raw path that are not empty."""
    return [segment for segment in raw_path.split(b"/") if segment]


class Node(Generic[Handler]):
    """A place in the tree: the handlers of a path, by method, and the places below it."""

    __slots__ = ("handlers", "is_number", "parameter", "words")

    def __init__(self) -> None:
        self.handlers: dict[str, Handler] = {}
        self.words: dict[bytes, Node[Handler]] = {}
        self.parameter: Node[Handler] | None = None
        self.is_number = False
        """True if the parameter is a whole number."""

    @property
    def methods(self) -> list[str]:
        """The methods that are allowed here."""
        methods = {*self.handlers, "OPTIONS"}
        if "GET" in methods:
            methods.add("HEAD")
        return sorted(methods)

    def handler(self, method: str) -> Handler | None:
        """The handler of a method; HEAD has that of GET."""
        return self.handlers.get("GET" if method == "HEAD" else method)


class Routes(Generic[Handler]):
    """Rows of method, path and handler; a path has `{name}` or `{#}`, a number, as parameters."""

    def __init__(self, table: Iterable[tuple[str, str, Handler]]) -> None:
        self._root: Node[Handler] = Node()
        for method, path, handler in table:
            node = self._root
            for segment in path.split("/"):
                if segment.startswith("{"):
                    node.parameter = node.parameter or Node()
                    node = node.parameter
                    node.is_number = segment == "{#}"
                elif segment:
                    node = node.words.setdefault(segment.encode(), Node())
            node.handlers[method] = handler

    def find(self, parts: Sequence[bytes]) -> tuple[Node[Handler] | None, list[bytes]]:
        """The place of a path, None if it has none or no handler, and the path's parameters."""
        node = self._root
        parameters: list[bytes] = []
        for part in parts:
            below = node.words.get(part)
            if below is None:
                below = node.parameter
                if below is None or (below.is_number and not _is_number(part)):
                    return None, parameters
                parameters.append(part)
            node = below
        return (node if node.handlers else None), parameters


def _is_number(part: bytes) -> bool:
    return part.removeprefix(b"-").isdigit()
