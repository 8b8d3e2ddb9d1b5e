"""`barnabas dev`: a broker or a small cluster for development, with nothing to set up."""

import os
import random
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from barnabas.base.config.properties import from_flags
from barnabas.base.telemetry import TEXT, Logs
from barnabas.cli.dev.secure import METRICS_ON, PORT_HINT, DevWishes
from barnabas.cli.errors import CliError
from barnabas.cli.node_options import log_options, override_option
from barnabas.cli.output import json_option, print_json
from barnabas.node.config.definitions import from_environment

if TYPE_CHECKING:
    from barnabas.app.secured import Secured

EPILOG = """\b
Examples:
  barnabas dev
  barnabas dev --directory ./data --port 9092
  barnabas dev --nodes 3
  barnabas dev --nodes 3 --racks a,b,c --directory ./cluster
  barnabas dev --secure --directory ./secure
  barnabas dev --registry --console
  barnabas dev --registry --connect --sql --console
  barnabas dev --override num.partitions=3 --override log.retention.hours=1
"""


def _port_option(name: str, default: int, what: str) -> Callable[[Any], Any]:
    return click.option(
        f"--{name}-port",
        type=click.IntRange(0, 65535),
        default=default,
        show_default=True,
        help=f"Port of the {what}; 0 takes any free port.",
    )


@click.command(epilog=EPILOG)
@click.option(
    "--nodes",
    "-n",
    "count",
    type=click.IntRange(1, 20),
    default=1,
    show_default=True,
    help="Number of nodes, each a separate process.",
)
@click.option("--racks", help="Racks to assign to the nodes in turn, such as a,b,c.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=9092,
    show_default=True,
    help="Client port of the first node; 0 takes any free port.",
)
@click.option(
    "--controller-port",
    default=None,
    type=click.IntRange(0, 65535),
    help="Port of the first controller; by default the next one after the client ports.",
)
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Address to bind and advertise."
)
@click.option(
    "--directory",
    "-d",
    type=click.Path(file_okay=False),
    help="Keep data here; by default it is temporary, and removed at the end.",
)
@click.option(
    "--secure",
    is_flag=True,
    help="TLS, users admin and alice with passwords (SCRAM), and ACLs; certificates and "
    "configurations for clients are written to DIRECTORY/security.",
)
@click.option("--registry", is_flag=True, help="Run a schema registry too.")
@_port_option("registry", 8081, "schema registry")
@click.option("--connect", is_flag=True, help="Run a Connect worker too.")
@_port_option("connect", 8083, "Connect worker")
@click.option("--sql", is_flag=True, help="Run a SQL server too; it starts Spark.")
@_port_option("sql", 8088, "SQL server")
@click.option("--console", is_flag=True, help="Run a web console for all of them too, on loopback.")
@_port_option("console", 8090, "console")
@override_option
@log_options
@json_option
def command(
    count: int,
    racks: str | None,
    port: int,
    controller_port: int | None,
    host: str,
    directory: str | None,
    secure: bool,
    registry: bool,
    registry_port: int,
    connect: bool,
    connect_port: int,
    sql: bool,
    sql_port: int,
    console: bool,
    console_port: int,
    overrides: tuple[str, ...],
    logs: Logs,
    as_json: bool,
) -> int:
    """Run a broker or a small cluster, without a configuration file or formatting.

    It prints the addresses for clients, and runs until Ctrl-C. With several nodes, you can kill any
    of them: the others continue, and the command reports it.
    """
    quiet = logs.quieter()
    if registry or connect or sql or console:
        from barnabas.cli.dev.services import Beside, run_with_services

        kept, login, admin = directory, None, None
        is_secure = secure or (directory and os.path.isdir(os.path.join(directory, "security")))
        if is_secure or sql:
            directory = directory or tempfile.mkdtemp(prefix="barnabas-")
        if is_secure:
            assert directory is not None
            login = os.path.join(directory, "security", "schema-registry.properties")
            admin = os.path.join(directory, "security", "admin.properties")
        flags = ["--nodes", str(count), "--host", host, "--port", str(port)]
        flags += ["--racks", racks] if racks else []
        flags += [] if controller_port is None else ["--controller-port", str(controller_port)]
        flags += ["--directory", directory] if directory else []
        flags += ["--secure"] if secure else []
        flags += [word for pair in overrides for word in ("--override", pair)]
        flags += [*logs.flags(), *(["--json"] if as_json else [])]
        beside = Beside(host, count, login, admin)
        try:
            services = [beside.registry(registry_port)] if registry else []
            services += [beside.connect(connect_port, has_registry=registry)] if connect else []
            services += [beside.sql(sql_port, str(directory))] if sql else []
            services += [beside.console(console_port)] if console else []
            return run_with_services(flags, services, logs=quiet, as_json=as_json)
        finally:
            if directory is not None and kept is None:
                shutil.rmtree(directory, ignore_errors=True)
    wishes = DevWishes(
        count,
        os.path.abspath(directory) if directory else tempfile.mkdtemp(prefix="barnabas-"),
        directory is None,
        host,
        port,
        controller_port,
        tuple(name.strip() for name in (racks or "").split(",") if name.strip()),
        {**from_environment(os.environ), **from_flags(overrides)},
        quiet,
        as_json,
        secure,
    )
    try:
        if count == 1 and not racks and not _has_nodes(wishes.directory):
            return _run_one(wishes)
        from barnabas.cli.dev.nodes import run_nodes

        return run_nodes(wishes)
    finally:
        if wishes.is_temporary:
            before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # which may come twice
            shutil.rmtree(wishes.directory, ignore_errors=True)
            signal.signal(signal.SIGHUP, before)


def _has_nodes(directory: str) -> bool:
    """Return whether an earlier run left several nodes there."""
    return os.path.isdir(os.path.join(directory, "node-1"))


def _run_one(wishes: DevWishes) -> int:
    from barnabas.app.listening import CannotListenError
    from barnabas.app.local_nodes import NODE_ID, format_standalone, standalone_properties
    from barnabas.app.node import Node
    from barnabas.app.runner import StartError, advertised_listeners, run_node
    from barnabas.base import telemetry
    from barnabas.base.clock import SystemClock
    from barnabas.base.local_disk import LocalDisk
    from barnabas.cli.dev import secure as dev_secure
    from barnabas.node.config.definitions import LOG_FORMAT_KEY
    from barnabas.node.config.node_config import NodeConfig

    controller_port = wishes.controller_port
    if controller_port is None:
        controller_port = wishes.port + 1 if wishes.port else 0
    secured = dev_secure.secured_for(wishes)
    if secured is not None:
        secured.make_certificate(NODE_ID, [wishes.host])
    properties = standalone_properties(
        wishes.directory,
        host=wishes.host,
        port=wishes.port,
        controller_port=controller_port,
        secured=secured,
    )
    style = {} if wishes.logs.format == TEXT else {LOG_FORMAT_KEY: wishes.logs.format}
    config = NodeConfig.from_properties({**METRICS_ON, **properties, **wishes.overrides, **style})
    telemetry.configure(Logs(wishes.logs.level, config.get_str(LOG_FORMAT_KEY)))
    disk = LocalDisk()
    try:
        format_standalone(
            disk, config, random=random.SystemRandom(), clock=SystemClock(), secured=secured
        )
    finally:
        disk.close()

    def ready(node: Node, metrics_url: str | None) -> None:
        address = advertised_listeners(node)[0]
        bootstrap = f"{address.host}:{address.port}"
        if wishes.as_json:
            value = {"ready": True, "bootstrap_servers": bootstrap, "metrics": metrics_url}
            more = dev_secure.facts(secured, bootstrap)
            print_json({**value, "directory": wishes.directory, **more})
        else:
            _greet(bootstrap, None if wishes.is_temporary else wishes.directory, secured)
            if metrics_url is not None:
                click.echo(f"Metrics: {metrics_url}")
        sys.stdout.flush()

    try:
        return run_node(config, ready)
    except StartError as error:
        if isinstance(error.__cause__, CannotListenError):
            raise CliError(str(error), hint=PORT_HINT) from error
        raise


def _greet(bootstrap: str, directory: str | None, secured: "Secured | None") -> None:
    where = f"kept in {directory}" if directory else "temporary, removed at the end"
    flag = "" if bootstrap.endswith(":9092") else f" -b {bootstrap}"
    click.echo(f"Ready: bootstrap.servers={bootstrap}")
    click.echo(f"Data:  {where}")
    if secured is not None:
        from barnabas.cli.dev.secure import greet

        greet(secured, bootstrap)
        click.echo("Ctrl-C ends it.")
        return
    click.echo("Try:   " + f"echo hello | barnabas produce greetings{flag}")
    click.echo("       " + f"barnabas consume greetings{flag}")
    click.echo("Ctrl-C ends it.")
