"""Connections of commands to a cluster: options, client configuration, and waiting for answers."""

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import click

from barnabas.cli.client_config import TOKEN_KEY, from_java, read_client_file
from barnabas.cli.errors import CliError, ExitCode, from_kafka
from barnabas.cli.option_sets import Function, with_options
from barnabas.cli.output import json_option
from barnabas.kafka.bootstrap import PROBE_TIMEOUT_S, UnreachableError, first_reachable

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient, ClusterMetadata

    from barnabas.kafka.security import Security

DEFAULT_BOOTSTRAP = "localhost:9092"
LOGIN_TIMEOUT_S = 10.0
SECONDS_MAX = 7 * 86400
"""Milliseconds of it have 32 bits in requests, with room to spare."""

Result = TypeVar("Result")


class Seconds(click.FloatRange):
    """A time to wait, within what clocks and requests can say."""

    def __init__(self, *, least: float, is_open: bool = False) -> None:
        super().__init__(min=least, max=SECONDS_MAX, min_open=is_open)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        seconds = float(super().convert(value, param, ctx))
        if math.isnan(seconds):
            self.fail(f"{value!r} is not a time", param, ctx)
        return seconds


@dataclass(frozen=True)
class Connection:
    """Which cluster, and how long to wait for it."""

    bootstrap_servers: str
    config: Mapping[str, str] = field(repr=False)
    timeout_s: float

    def client_config(self, **more: Any) -> dict[str, Any]:
        """Configuration for a client of confluent-kafka, quiet on standard error.

        Raises CliError for what makes it abort the process.
        """
        if self.config.get("group.id") == "":
            raise CliError("group.id: the name is empty", ExitCode.USAGE)
        if TOKEN_KEY in self.config:
            raise CliError(
                "this command cannot log in with a delegation token", hint="use a user's password"
            )
        return {
            "bootstrap.servers": self.bootstrap_servers,
            "client.id": "barnabas-cli",
            "log_level": 0,
            **self.config,
            **more,
        }

    @cached_property
    def admin(self) -> "AdminClient":
        """An AdminClient for a cluster that is known to answer. Raises CliError."""
        self.probe()
        from barnabas.kafka.admin import Admin

        return Admin(self.client_config()).client

    def probe(self) -> None:
        """Raise CliError at once where no bootstrap address answers, or lets us in.

        The client library would say neither before its time is up, nor why.
        """
        from barnabas.base.tls.contexts import PropertyKeys
        from barnabas.cli.login import check
        from barnabas.kafka.security import Security

        security = Security(PropertyKeys(self.config))
        host, port = reachable(self.bootstrap_servers, self.timeout_s, security=security)
        check(host, port, self.config, min(LOGIN_TIMEOUT_S, self.timeout_s))

    def metadata(self) -> "ClusterMetadata":
        """Brokers and topics. Raises CliError."""
        from confluent_kafka import KafkaException

        try:
            return self.admin.list_topics(timeout=self.timeout_s)
        except KafkaException as error:
            raise from_kafka(error) from error

    def wait(self, future: "Future[Result]", what: str = "") -> Result:
        """The result of an admin call. Raises CliError."""
        from confluent_kafka import KafkaException

        try:
            return future.result(self.timeout_s + 5)
        except KafkaException as error:
            raise from_kafka(error, what) from error
        except TimeoutError as error:
            raise CliError(f"{what}: no answer in time", ExitCode.UNREACHABLE) from error


def reachable(
    bootstrap_servers: str,
    timeout_s: float = PROBE_TIMEOUT_S,
    option: str = "--bootstrap-servers",
    security: "Security | None" = None,
) -> tuple[str, int]:
    """Host and port of the first address that answers. Raises CliError if none does."""
    try:
        return first_reachable(bootstrap_servers, min(PROBE_TIMEOUT_S, timeout_s), security)
    except UnreachableError as error:
        hint = f"give the address with {option}"
        raise CliError(str(error), ExitCode.UNREACHABLE, hint) from error


def connection_options(function: Function) -> Function:
    """Options that every command against a cluster has: --json, and the argument `connection`."""

    def wrapped(
        bootstrap_servers: str,
        client_config: str | None,
        client_options: tuple[str, ...],
        timeout: float,
        **rest: Any,
    ) -> Any:
        config = _read_client_config(client_config, client_options)
        servers = config.pop("bootstrap.servers", None)
        chosen = bootstrap_servers or servers or DEFAULT_BOOTSTRAP
        return function(connection=Connection(chosen, config, timeout), **rest)

    return with_options(function, wrapped, _OPTIONS)


command_config_option = click.option(
    "--command-config",
    "--client-config",
    "client_config",
    envvar=["BARNABAS_COMMAND_CONFIG", "BARNABAS_CLIENT_CONFIG"],
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Properties of a client, Java's or librdkafka's, for TLS and SASL; by default the "
    "file that BARNABAS_COMMAND_CONFIG names.",
)
_OPTIONS: Sequence[Callable[[Any], Any]] = (
    json_option,
    click.option(
        "--bootstrap-servers",
        "--bootstrap-server",
        "-b",
        envvar="BARNABAS_BOOTSTRAP_SERVERS",
        metavar="HOST:PORT,...",
        help="Brokers to contact first; by default BARNABAS_BOOTSTRAP_SERVERS, then "
        f"{DEFAULT_BOOTSTRAP}.",
    ),
    command_config_option,
    click.option(
        "-X",
        "client_options",
        multiple=True,
        metavar="KEY=VALUE",
        help="A client property of librdkafka; may be repeated.",
    ),
    click.option(
        "--timeout",
        type=Seconds(least=0, is_open=True),
        default=15.0,
        show_default=True,
        metavar="SECONDS",
        help="Longest wait.",
    ),
)


def _read_client_config(path: str | None, pairs: Sequence[str]) -> dict[str, str]:
    from barnabas.base.config.properties import from_flags

    values = {} if path is None else read_client_file(path)
    return from_java(values, from_flags(pairs))
