"""`barnabas demo`: broker, generators, Spark pipeline and dashboard, started by one command."""

from __future__ import annotations

import sys

import click
from rich.console import Console

DEFAULT_DIRECTORY = ".cache/demo"
SECONDS_WITHOUT_TERMINAL = 60

EPILOG = """\b
Examples:
  barnabas demo                       until Ctrl-C, page on http://127.0.0.1:8088/
  barnabas demo --seconds 60          a bounded run; exit code 0 if every figure is right
  barnabas demo --bootstrap host:9092 on a Kafka cluster that runs already

\b
Exit codes: 0 every figure is right, 1 some are not, 2 wrong usage or something is not installed,
3 a part failed (the end of its log is shown), 130 ended by a second Ctrl-C.
"""


@click.command(epilog=EPILOG)
@click.option(
    "--directory",
    default=DEFAULT_DIRECTORY,
    show_default=True,
    envvar="BARNABAS_DEMO_DIRECTORY",
    help="Where everything is kept; a later run goes on from there.",
)
@click.option(
    "--seconds",
    type=click.IntRange(min=1),
    envvar="SECONDS",
    help="Publish for so many seconds, check and end. Without a terminal the default is "
    f"{SECONDS_WITHOUT_TERMINAL}, with one there is no end.",
)
@click.option("--bootstrap", help="Use this cluster, host:port, not a broker of our own.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Where the page listens.")
@click.option(
    "--port", type=click.IntRange(1, 65535), help="The page's port; by default from 8088 on."
)
@click.option("--seed", type=int, help="What happens follows from it (a new directory only).")
@click.option(
    "--rate", type=click.IntRange(min=1), help="Events per second (a new directory only)."
)
@click.option(
    "--acceleration",
    type=click.IntRange(min=1),
    help="Seconds of event time per second (a new directory only).",
)
@click.option("--fresh", is_flag=True, help="Remove what earlier runs left in the directory first.")
def demo(
    directory: str,
    seconds: int | None,
    bootstrap: str | None,
    host: str,
    port: int | None,
    seed: int | None,
    rate: int | None,
    acceleration: int | None,
    fresh: bool,
) -> None:
    """Run the whole platform on live input: producers, broker, Spark and a dashboard.

    Charging stations and shop visitors are simulated, published, processed and shown; at the end
    every figure on the page is held against the truth.
    """
    # Imported late: the other commands need neither the web server nor the clients.
    from barnabas.demo.commands import MissingError, check_requirements

    try:
        check_requirements()
    except MissingError as error:
        _refuse(str(error))

    from barnabas.demo.launch import SettingsConflictError, Wishes, launch
    from barnabas.demo.workspace import WorkspaceBusyError

    console = Console()
    if seconds is None and not console.is_terminal:
        seconds = SECONDS_WITHOUT_TERMINAL
    wishes = Wishes(directory, seconds, bootstrap, host, port, seed, rate, acceleration, fresh)
    try:
        code = launch(wishes, console)
    except (SettingsConflictError, WorkspaceBusyError) as error:
        _refuse(str(error))
    sys.exit(code)


def _refuse(message: str) -> None:
    click.echo(f"Error: {message}", err=True)
    sys.exit(2)
