"""`barnabas connect mirror`: Kafka's connect-mirror-maker.sh in the foreground."""

import signal
import sys
import threading

import click

from barnabas.base.telemetry import Logs
from barnabas.cli.errors import CliError, ExitCode, extra_packages
from barnabas.cli.node_options import log_options
from barnabas.cli.output import json_option, print_json

EPILOG = """\b
Examples:
  barnabas connect mirror mm2.properties
  barnabas connect mirror mm2.properties --clusters east

Run it near the target. SIGTERM and Ctrl-C end it cleanly, with exit code 0.
"""


@click.command("mirror", epilog=EPILOG)
@click.argument("properties", type=click.Path(dir_okay=False))
@click.option("--clusters", metavar="A,B,...", default="", help="Only flows to these clusters.")
@log_options
@json_option
def mirror_command(properties: str, clusters: str, logs: Logs, as_json: bool) -> int:
    """Mirror clusters to each other.

    The file is one for Kafka's connect-mirror-maker.sh.
    """
    with extra_packages("connect", "mirroring needs"):
        from barnabas.connect.connectors.mirror.dedicated import DedicatedMirror
        from barnabas.connect.worker.making import NoClusterError
        from barnabas.schemas.data.errors import ConfigError, ConnectError
    from barnabas.base import telemetry
    from barnabas.base.config.properties import parse_properties

    try:
        with open(properties, encoding="utf-8") as file:
            given = parse_properties(file.read())
    except (OSError, UnicodeDecodeError) as error:
        raise CliError(f"{properties}: {error}", ExitCode.USAGE) from error
    telemetry.configure(logs)
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    targets = tuple(one.strip() for one in clusters.split(",") if one.strip())
    try:
        mirror = DedicatedMirror(given, targets)
        try:
            mirror.start()
            flows = [f"{flow.source}->{flow.target}" for flow in mirror.flows]
            if as_json:
                print_json({"ready": True, "flows": flows})
            else:
                click.echo(f"mirroring {', '.join(flows)}")
            sys.stdout.flush()
            stopping.wait()
        finally:
            mirror.close()
    except ConfigError as error:
        raise CliError(str(error), ExitCode.USAGE) from error
    except NoClusterError as error:
        raise CliError(str(error), ExitCode.UNREACHABLE) from error
    except ConnectError as error:
        raise CliError(str(error)) from error
    return 0
