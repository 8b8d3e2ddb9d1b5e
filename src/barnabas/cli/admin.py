"""Requests of Kafka's Admin API that the client library has no call for.

They go to any Kafka cluster: reassignments, elections, the quorum and its voters, unregistering,
log directories. `Admin` is the floor's `WireAdmin` for commands: this is where its failures become
exit codes, lines and hints. A function per Admin call says what it asks, and has its answer as
values that commands work with.
"""

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec, TypeVar

from barnabas import __version__
from barnabas.base.config.values import parse_host_port
from barnabas.base.ids import TopicPartition, Uuid
from barnabas.cli.connection import Connection
from barnabas.cli.errors import CliError, ExitCode, from_code
from barnabas.cli.login import access_for, refusal
from barnabas.kafka import wire_routing
from barnabas.kafka.wire_admin import (
    AbsentError,
    AdminError,
    BrokerInfo,
    ClusterInfo,
    DecisionError,
    EndpointError,
    LeaderlessError,
    NoControllerError,
    NodeError,
    NoNodeError,
    RefusedError,
    SenselessError,
    WireAdmin,
)
from barnabas.kafka.wire_routing import PartitionState
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import partitions as partitions_messages
from barnabas.protocol.messages.configs import (
    AlterableConfig,
    AlterConfigsResource,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas.protocol.messages.connections import ApiVersionsRequest
from barnabas.protocol.messages.nodes import UnregisterBrokerRequest
from barnabas.protocol.messages.partitions import ListPartitionReassignmentsRequest
from barnabas.protocol.messages.voters import (
    AddRaftVoterRequest,
    Listener,
    RemoveRaftVoterRequest,
)
from barnabas.protocol.schema import Message

POLL_S = 0.25

P = ParamSpec("P")
T = TypeVar("T")
PREFERRED, UNCLEAN = 0, 1
"""Kinds of election, as ElectLeaders numbers them."""
QUIET_ELECTIONS = frozenset({ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED})


class Admin:
    """A cluster to send requests to. Use it in a `with` block."""

    def __init__(self, connection: Connection, *, controllers: bool = False) -> None:
        """Raises CliError where the client configuration asks for what is not spoken here."""
        self._config = connection.config
        named = [part.strip() for part in connection.bootstrap_servers.split(",") if part.strip()]
        if not named:
            raise CliError("no address is given", ExitCode.USAGE, "write host:port")
        for address in named:
            if parse_host_port(address.rpartition("://")[2]) is None:
                raise CliError(f"{address} is not host:port", ExitCode.UNREACHABLE)
        access = access_for(",".join(named), connection.config, connection.timeout_s)
        self._wire = WireAdmin(access, controllers=controllers)
        self.timeout_s = connection.timeout_s
        self.controllers = controllers

    def __enter__(self) -> "Admin":
        return self

    def __exit__(self, *_: object) -> None:
        self._wire.close()

    def pause(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)

    def wait_until(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        """Wait until the cluster has done what it was asked; False if the time ran out."""
        deadline = time.monotonic() + timeout_s
        while not condition():
            if time.monotonic() > deadline:
                return False
            self.pause(POLL_S)
        return True

    def run(
        self, work: Callable[Concatenate[WireAdmin, P], T], *given: P.args, **named: P.kwargs
    ) -> T:
        """Return what a function of the floor returns for this cluster. Raises CliError."""
        with self._told():
            return work(self._wire, *given, **named)

    def ask(self, request: Message, broker: int | None = None) -> Any:
        """The answer of `broker`, or of any that answers. Raises CliError."""
        with self._told():
            return self._wire.ask(request, broker)

    def ask_each(self, requests: Sequence[tuple[int, Message]]) -> list[Any]:
        """The answers of brokers that are asked together; a CliError for one without an answer."""
        with self._told():
            answers = self._wire.ask_each(requests)
        return [self._error(one) if isinstance(one, AdminError) else one for one in answers]

    def decide(self, request: Message, what: str = "") -> Any:
        """The answer to what the active controller decides; it may change in between.

        `request`'s response has a top-level error. Raises CliError for that.
        """
        with self._told():
            return self._wire.decide(request, what)

    def retry(self, request: Message, codes: Callable[[Any], Iterable[int]]) -> Any:
        """The answer to what the active controller decides, with an error for each part of it.

        `codes` takes those from the answer. It is asked again while another node decides.
        """
        with self._told():
            return self._wire.retry(request, codes)

    def serves(self, host: str, port: int, api: int) -> bool | None:
        """Return whether who answers there serves an API; None where nobody does."""
        return self._wire.serves(host, port, api)

    def unanswering(self) -> list[BrokerInfo]:
        """The nodes of the kind that is asked which do not answer now. Raises CliError."""
        with self._told():
            return self._wire.unanswering()

    def cluster(self) -> ClusterInfo:
        """The brokers there are now, fenced ones included. Raises CliError."""
        with self._told():
            return self._wire.describe()

    def info(self) -> ClusterInfo:
        """The nodes of the kind that is asked: brokers, or controllers. Raises CliError."""
        with self._told():
            return self._wire.describe(self._wire.kind)

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except AdminError as error:
            raise self._error(error) from error

    def _error(self, error: AdminError) -> CliError:
        if isinstance(error, NodeError):
            known = refusal(error.cause, error.where, self._config)
            return known or CliError(f"{error.where}: {error.cause.reason}", ExitCode.UNREACHABLE)
        if isinstance(error, NoNodeError):
            return self._silence(error)
        if isinstance(error, RefusedError):
            refused = from_code(error.code, error.message, error.what)
            if isinstance(error, DecisionError) and refused.code is ExitCode.UNREACHABLE:
                refused.hint = "no controller decided it: barnabas quorum status tells more"
            return refused
        if isinstance(error, EndpointError):
            hint = "brokers with --bootstrap-servers, controllers with --bootstrap-controller"
            return CliError(str(error), hint=hint)
        kinds = (
            (AbsentError, ExitCode.NOT_FOUND),
            (NoControllerError | LeaderlessError, ExitCode.UNREACHABLE),
            (SenselessError, ExitCode.USAGE),
        )
        codes = (code for kind, code in kinds if isinstance(error, kind))
        return CliError(str(error), next(codes, ExitCode.REFUSED))

    def _silence(self, error: NoNodeError) -> CliError:
        known = [refusal(one.cause, one.where, self._config) for one in error.failures]
        if known[0] is not None and all(known):
            return known[0]  # the settings are wrong, for one node as for the next
        option = "--bootstrap-controller" if self.controllers else "--bootstrap-servers"
        return CliError(str(error), ExitCode.UNREACHABLE, f"give the address with {option}")


def partitions(admin: Admin, topics: Sequence[str] | None = None) -> list[PartitionState]:
    """All partitions, or those of `topics`. Raises CliError, for unknown topics too."""
    return admin.run(wire_routing.partitions, topics)


def read_features(admin: Admin) -> dict[str, int]:
    """The cluster's finalized feature levels, by name. Raises CliError."""
    request = ApiVersionsRequest(
        client_software_name="barnabas", client_software_version=__version__
    )
    response = admin.ask(request)
    if response.error_code != ErrorCode.NONE:
        raise from_code(response.error_code, None, "features")
    return {item.name: item.max_version_level for item in response.finalized_features}


@dataclass(frozen=True, slots=True)
class Reassignment:
    """Replicas on the move: `replicas` are all replicas during the move."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]

    @property
    def target(self) -> tuple[int, ...]:
        """The replicas once it is done."""
        return tuple(broker for broker in self.replicas if broker not in self.removing)


def reassignments(admin: Admin) -> dict[TopicPartition, Reassignment]:
    """Return what is being moved. Raises CliError."""
    request = ListPartitionReassignmentsRequest(timeout_ms=int(admin.timeout_s * 1000))
    response = admin.decide(request, "listing reassignments")
    return {
        TopicPartition(topic.name, part.partition_index): Reassignment(
            tuple(part.replicas), tuple(part.adding_replicas), tuple(part.removing_replicas)
        )
        for topic in response.topics
        for part in topic.partitions
    }


def reassign(
    admin: Admin,
    targets: Mapping[TopicPartition, Sequence[int] | None],
    *,
    allow_factor_change: bool = True,
) -> dict[TopicPartition, CliError]:
    """Start moves, or cancel those whose target is None. Returns the refusals."""
    by_topic: dict[str, list[partitions_messages.ReassignablePartition]] = {}
    for key, replicas in targets.items():
        by_topic.setdefault(key.topic, []).append(
            partitions_messages.ReassignablePartition(
                partition_index=key.partition,
                replicas=None if replicas is None else list(replicas),
            )
        )
    request = partitions_messages.AlterPartitionReassignmentsRequest(
        timeout_ms=int(admin.timeout_s * 1000),
        allow_replication_factor_change=allow_factor_change,
        topics=[
            partitions_messages.ReassignableTopic(name=name, partitions=parts)
            for name, parts in by_topic.items()
        ],
    )
    response = admin.decide(request, "reassigning")
    refused = {}
    for topic in response.responses:
        for part in topic.partitions:
            if part.error_code != ErrorCode.NONE:
                key = TopicPartition(topic.name, part.partition_index)
                refused[key] = from_code(part.error_code, part.error_message, str(key))
    return refused


def elect(
    admin: Admin, keys: Iterable[TopicPartition] | None, kind: int = PREFERRED
) -> dict[TopicPartition, CliError | None]:
    """Elect leaders, of all partitions without `keys`.

    Returns what became of each: None where it has the right leader now. Raises CliError.
    """
    asked = None
    if keys is not None:
        asked = [
            partitions_messages.TopicPartitions(topic=name, partitions=parts)
            for name, parts in _by_topic(keys).items()
        ]
    request = partitions_messages.ElectLeadersRequest(
        election_type=kind, topic_partitions=asked, timeout_ms=int(admin.timeout_s * 1000)
    )
    response = admin.decide(request, "electing leaders")
    outcome: dict[TopicPartition, CliError | None] = {}
    for topic in response.replica_election_results:
        for part in topic.partition_result:
            key = TopicPartition(topic.topic, part.partition_id)
            outcome[key] = (
                None
                if part.error_code in QUIET_ELECTIONS
                else from_code(part.error_code, part.error_message, str(key))
            )
    return outcome


TOPIC, BROKER = 2, 4
"""Kinds of resources that have settings."""
SET, DELETE = 0, 1
STATIC = 4
"""config_source of what a broker's file says."""


def broker_settings(
    admin: Admin, broker: int | None, keys: Sequence[str] | None = None
) -> list[Any]:
    """The entries of DescribeConfigs for a broker, all or those of `keys`. Raises CliError.

    None stands for the cluster-wide defaults of brokers (`kafka-configs --broker-defaults`): in the
    protocol they belong to the broker without a name, which the client library refuses.
    """
    resource = DescribeConfigsResource(
        resource_type=BROKER,
        resource_name="" if broker is None else str(broker),
        configuration_keys=None if keys is None else list(keys),
    )
    response = admin.ask(
        DescribeConfigsRequest(resources=[resource], include_synonyms=True), broker
    )
    result = response.results[0]
    if result.error_code != ErrorCode.NONE:
        what = "broker defaults" if broker is None else f"node {broker}"
        raise from_code(result.error_code, result.error_message, what)
    return list(result.configs)


def changed_settings(
    kind: int, name: str, values: Mapping[str, str | None]
) -> AlterConfigsResource:
    """The part of a request that sets settings of a resource, and removes those that are None."""
    configs = [
        AlterableConfig(name=key, config_operation=DELETE if value is None else SET, value=value)
        for key, value in values.items()
    ]
    return AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)


def alter_broker_defaults(admin: Admin, values: Mapping[str, str | None]) -> None:
    """Set and remove cluster-wide defaults of brokers. Raises CliError."""
    resource = changed_settings(BROKER, "", values)
    response = admin.ask(IncrementalAlterConfigsRequest(resources=[resource]))
    result = response.responses[0]
    if result.error_code != ErrorCode.NONE:
        raise from_code(result.error_code, result.error_message, "broker defaults")


def static_config(admin: Admin, broker: int) -> dict[str, str]:
    """The settings of a broker's file, without secrets. Raises CliError."""
    found: dict[str, str] = {}
    for entry in broker_settings(admin, broker):
        for synonym in entry.synonyms:
            is_own = synonym.source == STATIC and synonym.name == entry.name
            if is_own and synonym.value is not None and not entry.is_sensitive:
                found[entry.name] = synonym.value
    return found


def topic_values(admin: Admin, topics: Sequence[str], key: str) -> dict[str, str]:
    """One key of each topic, overridden or not. Raises CliError."""
    resources = [
        DescribeConfigsResource(resource_type=TOPIC, resource_name=name, configuration_keys=[key])
        for name in topics
    ]
    response = admin.ask(DescribeConfigsRequest(resources=resources))
    return {
        result.resource_name: entry.value
        for result in response.results
        for entry in result.configs
        if entry.name == key and entry.value is not None
    }


def broker_values(admin: Admin, broker: int, keys: Sequence[str]) -> dict[str, str]:
    """Those of `keys` that a broker knows, with its values. Raises CliError."""
    entries = broker_settings(admin, broker, keys)
    return {entry.name: entry.value for entry in entries if entry.value is not None}


# -- log directories


@dataclass(frozen=True, slots=True)
class LogDirectory:
    """One log directory of a broker."""

    path: str
    error: str | None
    total_bytes: int
    usable_bytes: int
    sizes_bytes: Mapping[TopicPartition, int]


def log_directories(
    admin: Admin, brokers: Iterable[int], keys: Iterable[TopicPartition] | None = None
) -> dict[int, list[LogDirectory]]:
    """The log directories of `brokers`, with the partitions in `keys` or all.

    A broker that does not answer is left out.
    """
    request = describe_log_dirs_request(keys)

    chosen = list(brokers)
    found = {}
    answers = admin.ask_each([(broker, request) for broker in chosen])
    for broker, answer in zip(chosen, answers, strict=True):
        if isinstance(answer, CliError):
            continue
        if isinstance(answer, Exception):
            raise answer
        if answer.error_code != ErrorCode.NONE:
            raise from_code(answer.error_code, None, f"node {broker}")
        found[broker] = [_log_directory(result) for result in answer.results]
    return found


def describe_log_dirs_request(
    keys: Iterable[TopicPartition] | None,
) -> partitions_messages.DescribeLogDirsRequest:
    """The question for the directories with the partitions in `keys`, or all."""
    asked = None
    if keys is not None:
        asked = [
            partitions_messages.DescribableLogDirTopic(topic=name, partitions=parts)
            for name, parts in _by_topic(keys).items()
        ]
    return partitions_messages.DescribeLogDirsRequest(topics=asked)


def _log_directory(result: partitions_messages.DescribeLogDirsResult) -> LogDirectory:
    failed = result.error_code != ErrorCode.NONE
    return LogDirectory(
        result.log_dir,
        ErrorCode.of(result.error_code).name if failed else None,
        result.total_bytes,
        result.usable_bytes,
        {
            TopicPartition(topic.name, part.partition_index): part.partition_size
            for topic in result.topics
            for part in topic.partitions
            if not part.is_future_key
        },
    )


def sizes_on(
    directories: Mapping[int, Sequence[LogDirectory]],
) -> dict[int, dict[TopicPartition, int]]:
    """Sizes of replicas by broker."""
    return {
        broker: {key: size for item in found for key, size in item.sizes_bytes.items()}
        for broker, found in directories.items()
    }


# -- brokers and voters


def unregister(admin: Admin, broker: int) -> None:
    """Have the cluster forget a broker. Raises CliError."""
    admin.decide(UnregisterBrokerRequest(broker_id=broker), f"node {broker}")


def add_voter(
    admin: Admin,
    cluster_id: str,
    voter_id: int,
    directory_id: Uuid,
    endpoints: Sequence[tuple[str, str, int]],
) -> None:
    """Make an observer a voter; `endpoints` are (listener, host, port). Raises CliError."""
    request = AddRaftVoterRequest(
        cluster_id=cluster_id,
        timeout_ms=int(admin.timeout_s * 1000),
        voter_id=voter_id,
        voter_directory_id=directory_id,
        listeners=[Listener(name=name, host=host, port=port) for name, host, port in endpoints],
    )
    admin.decide(request, f"voter {voter_id}")


def remove_voter(admin: Admin, cluster_id: str, voter_id: int, directory_id: Uuid) -> None:
    """Take a voter out of the quorum. Raises CliError."""
    request = RemoveRaftVoterRequest(
        cluster_id=cluster_id, voter_id=voter_id, voter_directory_id=directory_id
    )
    admin.decide(request, f"voter {voter_id}")


def _by_topic(keys: Iterable[TopicPartition]) -> dict[str, list[int]]:
    by_topic: dict[str, list[int]] = {}
    for key in keys:
        by_topic.setdefault(key.topic, []).append(key.partition)
    return by_topic
