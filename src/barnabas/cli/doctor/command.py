"""`barnabas doctor`: common faults, found before they cost an afternoon."""

from dataclasses import asdict

import click

from barnabas.cli.connection import Connection, connection_options
from barnabas.cli.doctor.findings import Finding, Level
from barnabas.cli.errors import ExitCode
from barnabas.cli.output import counted, print_json

MARKS = {
    Level.OK: ("ok   ", "green"),
    Level.NOTE: ("note ", "yellow"),
    Level.FAULT: ("FAULT", "red"),
}
EPILOG = """\b
Examples:
  barnabas doctor
  barnabas doctor -b broker.example:9092 --round-trip
  barnabas doctor --config server.properties

Exit code 5 if it finds a fault; 0 if it only has notes.
"""


@click.command(epilog=EPILOG)
@click.option(
    "--config",
    "-c",
    "properties",
    type=click.Path(dir_okay=False),
    help="Also check this machine's node with this server.properties.",
)
@click.option("--round-trip", is_flag=True, help="Send a record through a temporary topic.")
@click.option("--machine-only", is_flag=True, help="Do not check the cluster.")
@connection_options
def command(
    connection: Connection,
    properties: str | None,
    round_trip: bool,
    machine_only: bool,
    as_json: bool,
) -> int:
    """Check a cluster as a client sees it, and this machine.

    Above all, it checks whether this machine can reach the addresses that brokers advertise.
    """
    from barnabas.cli.doctor.cluster import check_cluster
    from barnabas.cli.doctor.machine import check_machine, check_properties

    findings: list[Finding] = []

    def found(finding: Finding) -> None:
        findings.append(finding)
        if not as_json:
            _print(finding)

    for finding in check_machine():
        found(finding)
    if properties is not None:
        for finding in check_properties(properties):
            found(finding)
    if not machine_only:
        for finding in check_cluster(connection, round_trip=round_trip):
            found(finding)
    faults = sum(finding.level is Level.FAULT for finding in findings)
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        click.echo(f"{counted(faults, 'fault') if faults else 'No fault'} found.")
    return ExitCode.PROBLEMS if faults else ExitCode.DONE


def _print(finding: Finding) -> None:
    mark, colour = MARKS[finding.level]
    click.echo(f"{click.style(mark, fg=colour)}  {finding.check}: {finding.detail}")
    if finding.advice:
        click.echo(f"       {finding.advice}")
