"""`barnabas sql`: SQL over streams."""

import click

from barnabas.cli.sql_server import server_command


@click.group()
def command() -> None:
    """SQL over streams, in ksqlDB's language."""


command.add_command(server_command)
