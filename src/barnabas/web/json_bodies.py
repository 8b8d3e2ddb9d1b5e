"""JSON of requests: what a client sends is taken within bounds, or refused as one kind of error."""

import json
from typing import Any, Final

DEPTH_MAX: Final = 200
"""Objects and arrays within each other; code that walks them may recurse."""


def parse_json(data: bytes | bytearray | str, **hooks: Any) -> Any:
    """Return what a text of JSON says; `hooks` are those of `json.loads`.

    Raises ValueError for what is no JSON: NaN and Infinity too, bytes that are no text, numbers of
    thousands of digits, values nested too deeply.
    """
    try:
        found = json.loads(data, parse_constant=_refuse, **hooks)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    _check_depth(found)
    return found


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not a value of JSON")


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(DEPTH_MAX + 1):
        inner = [one for one in level if isinstance(one, dict | list)]
        if not inner:
            return
        level = [part for one in inner for part in (one.values() if isinstance(one, dict) else one)]
    raise ValueError(f"nested deeper than {DEPTH_MAX} levels")
