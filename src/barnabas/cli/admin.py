"""Requests of Kafka's Admin API that the client library has no call for.

They go to any Kafka cluster: reassignments, elections, the quorum and its voters, unregistering,
log directories. `Admin` is the floor's `WireAdmin` for commands: this is where its failures become
exit codes, lines and hints.
"""

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar

from barnabas.base.config.values import parse_host_port
from barnabas.cli.connection import Connection
from barnabas.cli.errors import CliError, ExitCode, from_code
from barnabas.cli.login import access_for, refusal
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
from barnabas.protocol.schema import Message

POLL_S = 0.25

P = ParamSpec("P")
T = TypeVar("T")


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
