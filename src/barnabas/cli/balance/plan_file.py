"""Plans made by hand: as files, and held against what there is.

Files are in the JSON that `kafka-reassign-partitions` reads and writes.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from barnabas.base.ids import TopicPartition
from barnabas.cli.balance.model import Move, PlanError
from barnabas.cli.balance.survey import Survey
from barnabas.cli.errors import CliError, ExitCode


def to_document(moves: Iterable[Move]) -> dict[str, Any]:
    """The content of a plan's file."""
    return {
        "version": 1,
        "partitions": [
            {"topic": move.topic, "partition": move.index, "replicas": list(move.after)}
            for move in moves
        ],
    }


def read_plan(path: str) -> dict[TopicPartition, tuple[int, ...]]:
    """Wanted replicas by partition. Raises CliError for what is not a plan."""
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
    except OSError as error:
        code = ExitCode.NOT_FOUND if isinstance(error, FileNotFoundError) else ExitCode.REFUSED
        raise CliError(f"{path}: {error.strerror}", code) from error
    except ValueError as error:
        raise CliError(f"{path}: is not JSON: {error}", ExitCode.USAGE) from error
    try:
        return parse_plan(document)
    except ValueError as error:
        raise CliError(f"{path}: {error}", ExitCode.USAGE) from error


def parse_plan(document: Any) -> dict[TopicPartition, tuple[int, ...]]:
    """Wanted replicas by partition. Raises ValueError."""
    if not isinstance(document, Mapping) or not isinstance(document.get("partitions"), list):
        raise ValueError('has no list "partitions"')
    if document.get("version", 1) != 1:
        raise ValueError(f"has version {document['version']!r}; only 1 is supported")
    wanted: dict[TopicPartition, tuple[int, ...]] = {}
    for position, entry in enumerate(document["partitions"]):
        key, replicas = _parse_entry(entry, f"partitions[{position}]")
        if key in wanted:
            raise ValueError(f"names {key} twice")
        wanted[key] = replicas
    if not wanted:
        raise ValueError("has no partitions")
    return wanted


def _parse_entry(entry: Any, where: str) -> tuple[TopicPartition, tuple[int, ...]]:
    if not isinstance(entry, Mapping):
        raise ValueError(f"{where} is not an object")
    topic, index, replicas = (entry.get(name) for name in ("topic", "partition", "replicas"))
    if not isinstance(topic, str) or not topic:
        raise ValueError(f"{where} has no topic")
    if not isinstance(index, int) or not _is_number(index):
        raise ValueError(f"{where} has no partition number")
    if not isinstance(replicas, list) or not replicas or not all(map(_is_number, replicas)):
        raise ValueError(f"{where} has no list of replicas, which are broker ids")
    if len(set(replicas)) < len(replicas):
        raise ValueError(f"{topic}-{index} would have two replicas on one broker")
    directories = entry.get("log_dirs", [])
    if not isinstance(directories, list) or any(item != "any" for item in directories):
        raise ValueError(
            f"{topic}-{index} names log_dirs: replicas move between brokers only, not to a "
            'directory; leave log_dirs out, or write "any"'
        )
    return TopicPartition(topic, index), tuple(replicas)


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def moves_to(found: Survey, wanted: Mapping[TopicPartition, Sequence[int]]) -> list[Move]:
    """The changes until every partition has its wanted replicas.

    Raises PlanError for partitions that do not exist, and replicas on nodes that are down or
    unknown.
    """
    placement = {TopicPartition(item.topic, item.index): item for item in found.placement()}
    moves = []
    for key, replicas in wanted.items():
        current = placement.get(key)
        if current is None:
            raise PlanError(f"there is no partition {key}; take it out of the plan")
        for broker in replicas:
            check_target(found, broker, current.replicas, f"{key}")
        if tuple(replicas) != current.replicas:
            moves.append(
                Move(
                    key.topic, key.partition, current.replicas, tuple(replicas), current.size_bytes
                )
            )
    return moves


def check_target(found: Survey, broker: int, current: Sequence[int], what: str) -> None:
    """Raise PlanError for a broker that cannot take a replica it does not have yet."""
    known = found.cluster.brokers.get(broker)
    if known is None:
        ids = ", ".join(map(str, found.cluster.brokers))
        raise PlanError(f"{what}: there is no node {broker}; there are {ids}")
    if known.is_fenced and broker not in current:
        raise PlanError(
            f"{what}: node {broker} is down and cannot take a replica; start it first, or choose "
            "another node"
        )
