"""`barnabas metrics`: what Prometheus and Grafana need for this platform's metrics."""

import json
import os
from importlib.resources import files

import click

from barnabas.cli.errors import CliError, ExitCode
from barnabas.cli.output import json_option, print_json

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
@json_option
def dashboards(directory: str, as_json: bool) -> None:
    """Write the Grafana dashboards, a JSON file each."""
    from barnabas.cli.metrics.dashboards import DASHBOARDS

    titles: dict[str, str] = {}
    for dashboard in DASHBOARDS:
        path = os.path.join(directory, f"barnabas-{dashboard.name}.json")
        _write(path, json.dumps(dashboard.as_json(), indent=2) + "\n")
        titles[path] = dashboard.title
    if as_json:
        print_json([{"path": path, "title": title} for path, title in titles.items()])
        return
    for path, title in titles.items():
        click.echo(f"{os.path.basename(path)}: {title}")


@command.command(epilog="\b\nExample:\n  barnabas metrics alerts --to ./alerts.yml\n")
@click.option(
    "--to", "path", required=True, type=click.Path(dir_okay=False), help="The file to write."
)
@json_option
def alerts(path: str, as_json: bool) -> None:
    """Write the alert rules, for `rule_files` of prometheus.yml."""
    _write(path, alert_rules())
    if as_json:
        print_json({"path": path})
        return
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
