"""Throttles of replication, set and removed as Kafka's reassignment tool does (KIP-73).

Brokers get a rate for what leaders send and for what followers take in; topics say which replicas
it is for: all that exist as leaders, those that are being made as followers.
"""

from collections.abc import Iterable, Sequence

from barnabas.cli.admin import BROKER, TOPIC, Admin, changed_settings
from barnabas.cli.balance.model import Move
from barnabas.cli.errors import CliError, ExitCode, from_code
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.configs import (
    AlterConfigsResource,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterConfigsRequest,
)

LEADER_RATE_KEY = "leader.replication.throttled.rate"
FOLLOWER_RATE_KEY = "follower.replication.throttled.rate"
LEADER_REPLICAS_KEY = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS_KEY = "follower.replication.throttled.replicas"
RATES = (LEADER_RATE_KEY, FOLLOWER_RATE_KEY)
DYNAMIC_BROKER = 2
"""config_source of a value that was set for one broker."""
DYNAMIC_TOPIC = 1


def set_throttles(
    admin: Admin, moves: Sequence[Move], rate_bytes_per_s: int, live: Iterable[int]
) -> None:
    """Let the copying of `moves` take at most `rate_bytes_per_s` per broker. Raises CliError."""
    topics = [
        changed_settings(
            TOPIC, name, {LEADER_REPLICAS_KEY: leaders, FOLLOWER_REPLICAS_KEY: followers}
        )
        for name, leaders, followers in _replicas_by_topic(moves)
    ]
    _alter(admin, topics)
    involved = {broker for move in moves for broker in (*move.before, *move.after)}
    for broker in sorted(involved & set(live)):
        rates = dict.fromkeys(RATES, str(rate_bytes_per_s))
        _alter(admin, [changed_settings(BROKER, str(broker), rates)], broker)


def clear_throttles(admin: Admin, topics: Iterable[str], brokers: Iterable[int]) -> list[int]:
    """Remove what `set_throttles` set. Raises CliError.

    Only a broker itself takes a change of its configuration; returns those that do not answer.
    """
    both = dict.fromkeys((LEADER_REPLICAS_KEY, FOLLOWER_REPLICAS_KEY))
    _alter(admin, [changed_settings(TOPIC, name, both) for name in sorted(set(topics))])
    silent = []
    for broker in sorted(set(brokers)):
        rates = changed_settings(BROKER, str(broker), dict.fromkeys(RATES))
        try:
            _alter(admin, [rates], broker)
        except CliError as error:
            if error.code is not ExitCode.UNREACHABLE:
                raise
            silent.append(broker)
    return silent


def throttled_brokers(admin: Admin, live: Iterable[int]) -> list[int]:
    """Brokers that have a rate set, perhaps left behind; as far as they answer. Raises CliError."""
    found = []
    for broker in live:
        resource = DescribeConfigsResource(
            resource_type=BROKER, resource_name=str(broker), configuration_keys=list(RATES)
        )
        try:
            if _values(admin, [resource], DYNAMIC_BROKER, broker):
                found.append(broker)
        except CliError as error:
            if error.code is not ExitCode.UNREACHABLE:
                raise
    return found


def throttled_topics(admin: Admin, names: Iterable[str]) -> list[str]:
    """Topics that name throttled replicas. Raises CliError."""
    resources = [
        DescribeConfigsResource(
            resource_type=TOPIC,
            resource_name=name,
            configuration_keys=[LEADER_REPLICAS_KEY, FOLLOWER_REPLICAS_KEY],
        )
        for name in names
    ]
    return _values(admin, resources, DYNAMIC_TOPIC) if resources else []


def _replicas_by_topic(moves: Sequence[Move]) -> list[tuple[str, str, str]]:
    leaders: dict[str, list[str]] = {}
    followers: dict[str, list[str]] = {}
    for move in moves:
        if move.adding:
            leaders.setdefault(move.topic, []).extend(
                f"{move.index}:{broker}" for broker in move.before
            )
            followers.setdefault(move.topic, []).extend(
                f"{move.index}:{broker}" for broker in move.adding
            )
    return [(name, ",".join(leaders[name]), ",".join(followers[name])) for name in leaders]


def _alter(
    admin: Admin, resources: Sequence[AlterConfigsResource], broker: int | None = None
) -> None:
    if not resources:
        return
    response = admin.ask(IncrementalAlterConfigsRequest(resources=list(resources)), broker)
    for result in response.responses:
        if result.error_code not in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
            what = f"throttle of {result.resource_name}"
            raise from_code(result.error_code, result.error_message, what)


def _values(
    admin: Admin,
    resources: Sequence[DescribeConfigsResource],
    source: int,
    broker: int | None = None,
) -> list[str]:
    """Names of the resources where one of the keys was set."""
    response = admin.ask(DescribeConfigsRequest(resources=list(resources)), broker)
    return [
        result.resource_name
        for result in response.results
        if any(entry.config_source == source and entry.value for entry in result.configs)
    ]
