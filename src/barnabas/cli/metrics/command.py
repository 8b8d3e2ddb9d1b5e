"""`barnabas metrics`: what Prometheus and Grafana need for this platform's metrics."""

import json
import os
from importlib.resources import files

import click

from barnabas.cli.errors import CliError, ExitCode

ALERTS = "alerts.yml"


@click.group()
def command() -> None:
    """Write dashboards for Grafana and alert rules for Prometheus."""


@command.command(epilog="\b\nExample:\n  barnabas metrics dashboards --to ./dashboards\n")
@click.option(
    "--to",
    "directory",
    required=True,
    type=click.Path(file_okay=False),
    help="Directory for the JSON files; it is created.",
)
def dashboards(directory: str) -> None:
    """Write the Grafana dashboards, a JSON file each."""
    from barnabas.cli.metrics.dashboards import DASHBOARDS

    for dashboard in DASHBOARDS:
        name = f"barnabas-{dashboard.name}.json"
        _write(os.path.join(directory, name), json.dumps(dashboard.as_json(), indent=2) + "\n")
        click.echo(f"{name}: {dashboard.title}")


@command.command(epilog="\b\nExample:\n  barnabas metrics alerts --to ./alerts.yml\n")
@click.option(
    "--to", "path", required=True, type=click.Path(dir_okay=False), help="The file to write."
)
def alerts(path: str) -> None:
    """Write the alert rules, for `rule_files` of prometheus.yml."""
    _write(path, alert_rules())
    click.echo(f"{path}: promtool check rules {path}")


def alert_rules() -> str:
    """The text of the alert rules."""
    return files("barnabas.cli.metrics").joinpath(ALERTS).read_text(encoding="utf-8")


def _write(path: str, text: str) -> None:
    try:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise CliError(f"cannot write {path}: {error.strerror}", ExitCode.REFUSED) from error
