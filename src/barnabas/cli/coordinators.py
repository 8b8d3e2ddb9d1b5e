"""Requests to the broker that coordinates a group or a transaction, or that leads a partition.

Either may move during this: the command looks again and asks again until its time is up.

`kafka.wire.Coordinators` asks by address, remembers coordinators and raises what a writer handles;
commands ask by broker id through `Admin` and raise CliError.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from barnabas.base.ids import TopicPartition
from barnabas.cli.admin import Admin
from barnabas.cli.admin_calls import partitions
from barnabas.cli.errors import CliError, ExitCode, from_code
from barnabas.kafka.wire_admin import MOVED_CODES, RETRY_S
from barnabas.protocol.errors import EncodeError, ErrorCode
from barnabas.protocol.messages.groups import Coordinator, FindCoordinatorRequest
from barnabas.protocol.schema import Message

GROUP, TRANSACTION = 0, 1
"""Kinds of keys, as FindCoordinator numbers them."""
RETRIED = MOVED_CODES | {
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.LEADER_NOT_AVAILABLE,
}
"""Answers that mean: another broker decides, or soon this one will."""
Codes = Callable[[Any], Iterable[int]]
Answer = TypeVar("Answer")


def ask_broker(admin: Admin, request: Message, broker: int | None = None) -> Any:
    """As `Admin.ask`; a CliError too where the broker is too old for what is asked."""
    try:
        return admin.ask(request, broker)
    except EncodeError as error:
        raise CliError(f"the brokers are too old for this: {error}") from error


def ask_coordinator(
    admin: Admin, key: str, kind: int, request: Message, codes: Codes
) -> tuple[int, Any]:
    """The broker that coordinates `key`, and its answer. Raises CliError.

    `codes` takes the error codes from the answer; those that pass are not returned in time.
    """

    def once() -> tuple[int, Any]:
        find = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
        found = ask_broker(admin, find).coordinators[0]
        if found.error_code != ErrorCode.NONE:
            return found.node_id, found
        return found.node_id, ask_broker(admin, request, found.node_id)

    def told(answer: tuple[int, Any]) -> Iterable[int]:
        found = answer[1]
        return [found.error_code] if _is_coordinator(found) else codes(found)

    broker, answer = _retry(admin, once, told)
    if _is_coordinator(answer):
        raise from_code(answer.error_code, answer.error_message, key)
    return broker, answer


def ask_leader(
    admin: Admin, place: TopicPartition, request: Callable[[], Message], codes: Codes
) -> Any:
    """The answer of a partition's leader. Raises CliError, for unknown partitions too."""
    return _retry(admin, lambda: ask_broker(admin, request(), leader_of(admin, place)), codes)


def leader_of(admin: Admin, place: TopicPartition) -> int:
    """The broker that leads a partition. Raises CliError."""
    for state in partitions(admin, [place.topic]):
        if state.key == place:
            if state.leader < 0:
                raise CliError(f"{place} has no leader", ExitCode.UNREACHABLE)
            return state.leader
    raise CliError(f"there is no partition {place}", ExitCode.NOT_FOUND)


def ask_all(admin: Admin, request: Message, codes: Codes) -> list[tuple[int, Any]]:
    """The answer of each live broker. Raises CliError where one does not answer."""

    def once() -> list[tuple[int, Any]]:
        brokers = admin.cluster().live
        return list(zip(brokers, _together(admin, request, brokers), strict=True))

    return _retry(admin, once, lambda found: (code for _, one in found for code in codes(one)))


def _together(admin: Admin, request: Message, brokers: Sequence[int]) -> list[Any]:
    answers = admin.ask_each([(broker, request) for broker in brokers])
    for answer in answers:
        if isinstance(answer, EncodeError):
            raise CliError(f"the brokers are too old for this: {answer}") from answer
        if isinstance(answer, Exception):
            raise answer
    return answers


def _retry(
    admin: Admin, once: Callable[[], Answer], codes: Callable[[Answer], Iterable[int]]
) -> Answer:
    deadline = time.monotonic() + admin.timeout_s
    while True:
        answer = once()
        if RETRIED.isdisjoint(codes(answer)) or time.monotonic() > deadline:
            return answer
        admin.pause(RETRY_S)


def _is_coordinator(answer: Any) -> bool:
    return isinstance(answer, Coordinator)
