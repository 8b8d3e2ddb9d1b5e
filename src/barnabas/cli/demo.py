"""`barnabas demo`: broker, schema registry, generators, Spark, dashboard and console at once."""

from __future__ import annotations

from dataclasses import asdict

import click

from barnabas.cli.errors import CliError, ExitCode
from barnabas.cli.output import json_option, print_json

DEFAULT_DIRECTORY = ".cache/demo"
SECONDS_WITHOUT_TERMINAL = 60

EPILOG = """\b
Examples:
  barnabas demo                  until Ctrl-C, page on http://127.0.0.1:8088/,
                                 console on http://127.0.0.1:8090/
  barnabas demo --seconds 60     a bounded run; exit code 0 if all is right
  barnabas demo --nodes 3 --fresh
                                 three nodes: kill any one, no figure changes
  barnabas demo --nodes 3 --exactly-once --fresh
                                 the same, and no result is written twice
  barnabas demo --secure --fresh
                                 over TLS, a user and rights for each part
  barnabas demo --bootstrap host:9092
                                 on a Kafka cluster that is already running

Ctrl-C stops the generators, lets the rest catch up and checks every figure; a second Ctrl-C ends
the demo at once. The next run with the same directory continues from there, even after a kill.

\b
Exit codes: 0 every figure is right, 5 some are not, 1 a part failed or
something is not installed, 2 wrong usage, 3 no broker answers at --bootstrap,
130 ended by a second Ctrl-C.
"""


@click.command(epilog=EPILOG)
@click.option(
    "--directory",
    default=DEFAULT_DIRECTORY,
    show_default=True,
    help="Directory for all data; a later run continues from there.",
)
@click.option(
    "--seconds",
    type=click.IntRange(min=1),
    envvar="SECONDS",
    help="Publish for this many seconds, check and end. Without a terminal the default is "
    f"{SECONDS_WITHOUT_TERMINAL}; with one there is no limit.",
)
@click.option("--bootstrap", help="Use this cluster (host:port) instead of starting a broker.")
@click.option(
    "--nodes",
    type=click.IntRange(1, 5),
    help="Nodes of the cluster, each a process (a new directory only).  [default: 1]",
)
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Address on which the page listens."
)
@click.option(
    "--port", type=click.IntRange(1, 65535), help="The page's port; by default from 8088 on."
)
@click.option("--seed", type=int, help="Seed of the generated events (a new directory only).")
@click.option(
    "--rate", type=click.IntRange(min=1), help="Events per second (a new directory only)."
)
@click.option(
    "--acceleration",
    type=click.IntRange(min=1),
    help="Seconds of event time per second (a new directory only).",
)
@click.option(
    "--exactly-once",
    is_flag=True,
    default=None,
    envvar="EXACTLY_ONCE",
    help="Spark writes its results in transactions (a new directory only).",
)
@click.option(
    "--secure",
    is_flag=True,
    default=None,
    envvar="SECURE",
    help="TLS, and for each part a user with the rights that it needs (a new directory only).",
)
@click.option(
    "--warehouse",
    type=click.Choice(["iceberg", "parquet"]),
    envvar="WAREHOUSE",
    help="Kind of warehouse: an Iceberg table in a bucket, or Parquet files, which take less "
    "memory (a new directory only).  [default: iceberg]",
)
@click.option("--fresh", is_flag=True, help="Remove what earlier runs left in the directory first.")
@json_option
def command(
    directory: str,
    seconds: int | None,
    bootstrap: str | None,
    nodes: int | None,
    host: str,
    port: int | None,
    seed: int | None,
    rate: int | None,
    acceleration: int | None,
    exactly_once: bool | None,
    secure: bool | None,
    warehouse: str | None,
    fresh: bool,
    as_json: bool,
) -> int:
    """Run the whole platform on live input: producers, broker, schema registry, Spark, dashboard.

    It simulates charging stations and shop visitors, publishes and processes their events, and
    shows the results. The stations' table is in PostgreSQL, if that is installed, and a connector
    captures its changes; another writes the visitors' activity to an Iceberg table in a bucket.
    At the end it compares every figure on the page, and that table, with what was published.
    """
    # Imported late: the other commands need neither the web server nor the clients.
    from rich.console import Console

    from barnabas.demo.commands import MissingError, check_requirements

    try:
        check_requirements()
    except MissingError as error:
        raise CliError(str(error)) from None

    from barnabas.demo.launch import SettingsConflictError, Wishes, launch
    from barnabas.demo.workspace import WorkspaceBusyError

    if secure and bootstrap is not None:
        raise CliError("--secure is about the demo's own cluster", ExitCode.USAGE)
    if bootstrap is not None:
        from barnabas.cli.connection import reachable

        reachable(bootstrap, option="--bootstrap")
    console = Console(stderr=as_json)
    if seconds is None and not console.is_terminal:
        seconds = SECONDS_WITHOUT_TERMINAL
    wishes = Wishes(
        directory=directory,
        seconds=seconds,
        bootstrap=bootstrap,
        host=host,
        port=port,
        seed=seed,
        rate=rate,
        acceleration=acceleration,
        fresh=fresh,
        nodes=nodes,
        exactly_once=exactly_once,
        secure=secure,
        warehouse=warehouse,
    )
    try:
        outcome = launch(wishes, console)
    except SettingsConflictError as error:
        raise CliError(str(error), ExitCode.USAGE) from None
    except WorkspaceBusyError as error:
        raise CliError(str(error)) from None
    if as_json:
        print_json(asdict(outcome))
    return outcome.exit_code
