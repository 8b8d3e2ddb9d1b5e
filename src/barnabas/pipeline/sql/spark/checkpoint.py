"""The checkpoint directory of a query: Spark's own files, and which plan they are of."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import uuid
from dataclasses import asdict, dataclass

_FILE = "plan.json"
_VERSION = 1


class CheckpointError(Exception):
    """The directory is that of another plan, or cannot be read."""


@dataclass(frozen=True)
class Checkpoint:
    """What state depends on, beside the records: it stays as it was at the first start."""

    plan_hash: str
    partitions: int
    tasks: int
    state_name: str


def plan_hash(encoded_plan: str) -> str:
    """What tells plans apart."""
    return hashlib.sha256(encoded_plan.encode()).hexdigest()


def open_checkpoint(directory: str, plan: str, partitions: int, tasks: int) -> Checkpoint:
    """The checkpoint in a directory, made if there is none. Raises CheckpointError."""
    path = os.path.join(directory, _FILE)
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except FileNotFoundError:
        if os.path.exists(os.path.join(directory, "offsets")):
            raise CheckpointError(f"{directory} is the checkpoint of something else") from None
        return _create(directory, Checkpoint(plan_hash(plan), partitions, tasks, uuid.uuid4().hex))
    except (OSError, ValueError) as error:
        raise CheckpointError(f"cannot read {path}: {error}") from error
    if found.pop("version", None) != _VERSION:
        raise CheckpointError(f"{path} is of another version of this program")
    checkpoint = Checkpoint(**found)
    if checkpoint.plan_hash != plan_hash(plan):
        raise CheckpointError(
            f"{directory} is the checkpoint of another plan: its state does not fit this one. "
            "Delete it to begin anew, or use another query id"
        )
    return checkpoint


def _create(directory: str, checkpoint: Checkpoint) -> Checkpoint:
    os.makedirs(directory, exist_ok=True)
    path = os.path.join(directory, _FILE)
    with open(f"{path}.partial", "w", encoding="utf-8") as file:
        json.dump({"version": _VERSION, **asdict(checkpoint)}, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(f"{path}.partial", path)
    return checkpoint


def delete_checkpoint(directory: str) -> None:
    """Delete a query's state and offsets, if there are any."""
    shutil.rmtree(directory, ignore_errors=True)
