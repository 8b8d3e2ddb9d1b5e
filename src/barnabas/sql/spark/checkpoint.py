"""The checkpoint directory of a query: Spark's own files, and the plan that they belong to."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from barnabas.sql.analysis.metastore import check_plan_upgrade
from barnabas.sql.errors import AnalysisError
from barnabas.sql.plan.encoding import decode_plan
from barnabas.sql.runtime.stage import Stage
from barnabas.sql.spark.topology import Topology

_FILE = "plan.json"
_VERSION = 1


class CheckpointError(Exception):
    """The directory belongs to another plan, or cannot be read."""


@dataclass(frozen=True)
class Checkpoint:
    """The facts that state depends on, besides the records: they stay as at the first start.

    `plan`, `shape`: of the statement that ran last; empty in checkpoints of earlier versions.
    `topic_partitions`: how many each topic had, 0 if they differed; None in checkpoints of earlier
    versions.
    """

    plan_hash: str
    partitions: int
    tasks: int
    state_name: str
    plan: str = ""
    shape: str = ""
    topic_partitions: int | None = None

    @property
    def is_copartitioned(self) -> bool:
        """True if the state of a key may be where its records are in each topic."""
        return self.topic_partitions != 0

    def check_topics(self, counts: Mapping[str, int]) -> None:
        """Check the numbers of partitions of topics whose keys have their state where they are.

        Raises CheckpointError if keys have moved: their state would be looked for elsewhere.
        """
        first = self.topic_partitions or 0
        for topic, count in counts.items():
            # A key's partition modulo a divisor of both numbers is the same as before.
            if count != first and (count % self.partitions or first % self.partitions):
                raise CheckpointError(
                    f"Topic {topic} has {count} partitions, and had {first} when the query began. "
                    "Keys are in other partitions now, and their state is not: create the query "
                    f"again. Only multiples of {self.partitions} partitions move no keys"
                )


def plan_hash(encoded_plan: str) -> str:
    """Return what tells plans apart."""
    return hashlib.sha256(encoded_plan.encode()).hexdigest()


def open_checkpoint(
    directory: str,
    plan: str,
    partitions: int,
    tasks: int,
    shape: str = "",
    topic_partitions: int | None = None,
) -> Checkpoint:
    """The checkpoint in a directory, made if none exists. Raises CheckpointError.

    One of another plan is taken over if `plan` may replace that one; see upgrading.py.
    """
    path = os.path.join(directory, _FILE)
    wanted = plan_hash(plan)
    try:
        with open(path, encoding="utf-8") as file:
            stored = json.load(file)
    except FileNotFoundError:
        if os.path.exists(os.path.join(directory, "offsets")):
            raise CheckpointError(f"{directory} is the checkpoint of something else") from None
        name = uuid.uuid4().hex
        made = Checkpoint(wanted, partitions, tasks, name, plan, shape, topic_partitions)
        return _write(directory, made)
    except (OSError, ValueError) as error:
        raise CheckpointError(f"cannot read {path}: {error}") from error
    found = _decoded(path, stored)
    checkpoint = found
    if found.topic_partitions is None:
        checkpoint = replace(found, topic_partitions=topic_partitions)
    if checkpoint == found and found.plan_hash == wanted and found.plan:
        return found
    if checkpoint.plan_hash != wanted:
        reason = why_not_replaced(checkpoint.plan, checkpoint.shape, plan, shape)
        if reason:
            raise CheckpointError(
                f"{directory} is the checkpoint of another plan: its state does not fit this one. "
                f"Delete it to start over, or use another query id. {reason}"
            )
    return _write(directory, replace(checkpoint, plan_hash=wanted, plan=plan, shape=shape))


def _decoded(path: str, found: Any) -> Checkpoint:
    if not isinstance(found, dict) or found.pop("version", None) != _VERSION:
        raise CheckpointError(f"{path} is of another version of this program")
    try:
        return Checkpoint(**found)
    except TypeError as error:
        raise CheckpointError(f"cannot read {path}: {error}") from error


def _write(directory: str, checkpoint: Checkpoint) -> Checkpoint:
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


def shape_of(topology: Topology, stages: Sequence[Stage]) -> str:
    """What Spark has in its checkpoint of a plan: sources in order, stores of each operator."""
    sources = [[*place, topic] for place, topic in sorted(topology.topics.items())]
    operators = [
        [[stage, sorted(stages[stage].stores)] for stage in sorted(members)]
        for members in topology.operators
    ]
    return json.dumps([sources, operators])


def why_not_replaced(old: str, old_shape: str, new: str, new_shape: str) -> str:
    """Why the new plan cannot go on where the old one stopped; empty if it can.

    Plans are as `encode_plan` gives them.
    """
    if not old:
        return "It does not say of which plan it is."
    if old_shape != new_shape:
        return "Operators, their stores or the topics that they read differ."
    try:
        check_plan_upgrade(decode_plan(old).step, decode_plan(new).step)
    except AnalysisError as error:
        return str(error)
    return ""


def locked(directory: str) -> int:
    """Keep other servers of the service from a checkpoint, until the file is closed.

    Raises CheckpointError.
    """
    os.makedirs(directory, exist_ok=True)
    file = os.open(os.path.join(directory, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(file)
        raise CheckpointError(
            f"{directory} is in use by another server: queries that share micro-batches cannot "
            "move between servers"
        ) from error
    return file
