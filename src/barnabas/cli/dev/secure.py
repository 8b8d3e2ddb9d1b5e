"""Options of `barnabas dev`, and `--secure`: the cluster's secrets and the clients' settings."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import click

from barnabas.app.secured import ADMIN, DEMO_PREFIX, DEMO_USER, Secured, Security, open_secured
from barnabas.base.telemetry import Logs
from barnabas.cli.errors import CliError, ExitCode, extra_packages

METRICS_ON: Final = {
    "barnabas.metrics.listener": "http://127.0.0.1:0",
    "barnabas.metrics.clients": "false",
}
"""Development nodes show metrics at any free port of this machine, unless told otherwise.

They ask clients for none: each client of librdkafka prints a line on standard error if it is asked.
"""
PORT_HINT = "choose others with --port, or take free ones with --port 0"


@dataclass(frozen=True, slots=True)
class DevWishes:
    """The requested nodes."""

    count: int
    directory: str
    is_temporary: bool
    host: str
    port: int
    controller_port: int | None
    racks: tuple[str, ...]
    overrides: Mapping[str, str]
    logs: Logs
    as_json: bool
    is_secure: bool = False


def secured_for(wishes: DevWishes) -> Secured | None:
    """The security of an earlier run, or the requested one. Raises CliError."""
    from barnabas.app.secured import found_security

    try:
        mode = found_security(wishes.directory)
        if mode is None and not wishes.is_secure:
            return None
        with extra_packages("security", "barnabas dev --secure needs"):
            return open_secured(wishes.directory, mode or Security.SCRAM)
    except (KeyError, ValueError) as error:
        raise CliError(f"{wishes.directory}/security: {error}", ExitCode.USAGE) from error


def facts(secured: Secured | None, bootstrap: str) -> dict[str, Any]:
    """For --json: the files of each user. Writes them."""
    if secured is None:
        return {}
    secured.write_client_files(bootstrap)
    return {
        "security": secured.mode.value,
        "command_config": secured.file_of(ADMIN),
        "client_configs": secured.directory,
    }


def greet(secured: Secured, bootstrap: str) -> None:
    """Say how clients connect. Passwords are in the files alone."""
    secured.write_client_files(bootstrap)
    place = secured.directory
    protocol = secured.mode.protocol
    how = f"{protocol} {secured.mode.mechanism or ''}".strip()
    click.echo(f"Secure: {how}; users {ADMIN} (everything) and {DEMO_USER} ({DEMO_PREFIX}...)")
    click.echo("Client configurations, with passwords, for the owner's eyes alone:")
    for user in (ADMIN, DEMO_USER):
        click.echo(f"  {place}/{user}.properties              Java, barnabas --command-config")
        click.echo(f"  {place}/{user}.librdkafka.properties   librdkafka, confluent-kafka")
        click.echo(f"  {place}/{user}.spark.conf              options of Spark's format('kafka')")
    topic = f"{DEMO_PREFIX}greetings"
    click.echo(f"Try:   export BARNABAS_COMMAND_CONFIG={secured.file_of(ADMIN)}")
    click.echo(f"       barnabas topic create {topic}")
    click.echo("       barnabas acl list")
    click.echo(
        f"       echo hello | barnabas produce {topic} --command-config "
        f"{secured.file_of(DEMO_USER)}"
    )
