"""The generator's files: where to go on, and the truth. Each is replaced in one rename."""

from __future__ import annotations

import json
import os
from typing import Any

from barnabas.demo.contract import CHECKPOINT_FILE, TRUTH_FILE, Plan, Truth
from barnabas.demo.generators.simulation import World

_FORMAT_VERSION = 2


class StateMismatchError(ValueError):
    """The state directory belongs to a run with another plan."""


def load_or_create(directory: str, plan: Plan) -> World:
    """Return the world at the last checkpoint in `directory`, or a new one.

    A plan may be continued with another number of seconds, everything else must be the same:
    raises StateMismatchError otherwise.
    """
    os.makedirs(directory, exist_ok=True)
    try:
        with open(os.path.join(directory, CHECKPOINT_FILE), encoding="utf-8") as file:
            stored = json.load(file)
    except FileNotFoundError:
        return World(plan)
    kept = stored["world"]["plan"]
    for name in ("seed", "rate", "acceleration"):
        if stored["version"] != _FORMAT_VERSION or kept[name] != plan[name]:
            raise StateMismatchError(
                f"{directory} holds a run with {kept}, which cannot go on as {dict(plan)}; "
                "use the same values or another directory"
            )
    stored["world"]["plan"] = plan
    return World.restore(stored["world"])


def store(directory: str, snapshot: dict[str, Any], truth: Truth) -> None:
    """Write checkpoint and truth, both of the same moment."""
    replace_json(os.path.join(directory, TRUTH_FILE), truth)
    replace_json(
        os.path.join(directory, CHECKPOINT_FILE), {"version": _FORMAT_VERSION, "world": snapshot}
    )


def replace_json(path: str, value: Any) -> None:
    """Write `value` to `path` so that a reader, or a restart, finds the old or the new, whole."""
    partial = f"{path}.partial"
    with open(partial, "w", encoding="utf-8") as file:
        json.dump(value, file, separators=(",", ":"))
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)
