"""`barnabas dev`: a broker for development, with nothing to set up."""

import os
import random
import shutil
import sys
import tempfile

import click

from barnabas.cli.node_options import log_level_option, override_option
from barnabas.cli.output import json_option, print_json

EPILOG = """\b
Examples:
  barnabas dev
  barnabas dev --directory ./data --port 9092
  barnabas dev --override num.partitions=3 --override log.retention.hours=1
"""


@click.command(epilog=EPILOG)
@click.option("--port", default=9092, show_default=True, help="Port for clients; 0 takes any.")
@click.option(
    "--controller-port",
    default=None,
    type=int,
    help="Port of the controller; by default the one after --port.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to bind and tell.")
@click.option(
    "--directory",
    "-d",
    type=click.Path(file_okay=False),
    help="Keep data here; by default it is temporary and removed at the end.",
)
@override_option
@log_level_option
@json_option
def command(
    port: int,
    controller_port: int | None,
    host: str,
    directory: str | None,
    overrides: tuple[str, ...],
    log_level: str,
    as_json: bool,
) -> int:
    """Run a broker that needs no file, no formatting and no cluster.

    Prints the address to give to clients, and runs until Ctrl-C.
    """
    from barnabas.app.node import Node
    from barnabas.app.runner import advertised_listeners, run_node
    from barnabas.app.standalone import format_standalone, standalone_properties
    from barnabas.base import telemetry
    from barnabas.base.clock import SystemClock
    from barnabas.base.config.node import NodeConfig
    from barnabas.base.config.overrides import from_environment, from_flags
    from barnabas.base.local_disk import LocalDisk

    telemetry.configure(log_level if log_level != "info" else "warning")
    data = directory or tempfile.mkdtemp(prefix="barnabas-")
    if controller_port is None:
        controller_port = port + 1 if port else 0
    properties = standalone_properties(
        data, host=host, port=port, controller_port=controller_port
    ) | {**from_environment(os.environ), **from_flags(overrides)}
    config = NodeConfig.from_properties(properties)
    disk = LocalDisk()
    try:
        format_standalone(disk, config, random=random.SystemRandom(), clock=SystemClock())
    finally:
        disk.close()

    def ready(node: Node) -> None:
        address = advertised_listeners(node)[0]
        bootstrap = f"{address.host}:{address.port}"
        if as_json:
            print_json({"ready": True, "bootstrap_servers": bootstrap, "directory": data})
        else:
            _greet(bootstrap, None if directory is None else os.path.abspath(directory))
        sys.stdout.flush()

    try:
        return run_node(config, ready)
    finally:
        if directory is None:
            shutil.rmtree(data, ignore_errors=True)


def _greet(bootstrap: str, directory: str | None) -> None:
    where = f"kept in {directory}" if directory else "temporary, removed at the end"
    flag = "" if bootstrap.endswith(":9092") else f" -b {bootstrap}"
    click.echo(f"Ready: bootstrap.servers={bootstrap}")
    click.echo(f"Data:  {where}")
    click.echo("Try:   " + f"echo hello | barnabas produce greetings{flag}")
    click.echo("       " + f"barnabas consume greetings{flag}")
    click.echo("Ctrl-C ends it.")
