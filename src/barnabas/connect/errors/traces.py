"""What status and dead letters show of an error, in the form that Java's traces have."""

from __future__ import annotations

import traceback

from barnabas.schemas.data.errors import ConnectError

_CAUSES_MAX = 5
_FRAMES_MAX = 50


def java_name(error: BaseException) -> str:
    """Return the name of Kafka's class for an error; Python's own names stay."""
    if isinstance(error, ConnectError):
        return error.java_name
    kind = type(error)
    return (
        kind.__qualname__
        if kind.__module__ == "builtins"
        else f"{kind.__module__}.{kind.__qualname__}"
    )


def trace_of(error: BaseException) -> str:
    """Return class, text, frames (the newest first) and causes."""
    lines: list[str] = []
    cause: BaseException | None = error
    for depth in range(_CAUSES_MAX):
        if cause is None:
            break
        text = f"{java_name(cause)}: {cause}" if str(cause) else java_name(cause)
        lines.append(f"Caused by: {text}" if depth else text)
        frames = traceback.extract_tb(cause.__traceback__)[-_FRAMES_MAX:]
        lines += [
            f"\tat {frame.name}({frame.filename.rpartition('/')[2]}:{frame.lineno})"
            for frame in reversed(frames)
        ]
        cause = cause.__cause__
    return "\n".join(lines) + "\n"
