"""`barnabas start`: a node in the foreground."""

import click

from barnabas.base.telemetry import TEXT, Logs
from barnabas.cli.node_options import load_node_config, log_options, override_option
from barnabas.cli.output import json_option, print_json

EPILOG = """\b
Examples:
  barnabas storage format --standalone \\
    --cluster-id $(barnabas storage random-uuid) --config server.properties
  barnabas start server.properties
  barnabas start server.properties --override log.retention.ms=3600000
  BARNABAS_LOG_RETENTION_MS=3600000 barnabas start server.properties

SIGTERM and Ctrl-C end the node cleanly, with exit code 0; a second signal ends it at once.
"""


@click.command(epilog=EPILOG)
@click.argument("properties", type=click.Path(dir_okay=False))
@override_option
@log_options
@json_option
def command(properties: str, overrides: tuple[str, ...], logs: Logs, as_json: bool) -> int:
    """Run a node with the configuration in PROPERTIES, a Kafka server.properties file.

    Its directories must have been formatted (`barnabas storage format`, or Kafka's own tool).
    With --json, a line on standard output says when it is ready.
    """
    from barnabas.node.config.definitions import LOG_FORMAT_KEY

    if logs.format != TEXT:
        overrides = (*overrides, f"{LOG_FORMAT_KEY}={logs.format}")
    config = load_node_config(properties, overrides)
    from barnabas.app.node import Node
    from barnabas.app.runner import advertised_listeners, run_node
    from barnabas.base import telemetry

    telemetry.configure(Logs(logs.level, config.get_str(LOG_FORMAT_KEY)))

    def ready(node: Node, metrics_url: str | None) -> None:
        if as_json:
            listeners = {
                item.name: f"{item.host}:{item.port}" for item in advertised_listeners(node)
            }
            shown = {} if metrics_url is None else {"metrics": metrics_url}
            value = {"ready": True, "node_id": config.node_id, "listeners": listeners}
            print_json({**value, **shown})

    return run_node(config, ready)
