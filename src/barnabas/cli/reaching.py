"""How a command opens an `Admin`: the module with it is imported only when the command runs."""

from typing import TYPE_CHECKING

import click

from barnabas.cli.connection import Connection

if TYPE_CHECKING:
    from barnabas.cli.admin import Admin

controller_option = click.option(
    "--bootstrap-controller",
    "-C",
    "controllers",
    metavar="HOST:PORT,...",
    help="Ask controllers instead of brokers, for when no broker answers.",
)
"""--bootstrap-controller, as the argument `controllers`."""


def reached(connection: Connection, controllers: str | None = None) -> "Admin":
    """An `Admin` for the controllers that are named, or else for the brokers."""
    from dataclasses import replace

    from barnabas.cli.admin import Admin

    if controllers is None:
        return Admin(connection)
    return Admin(replace(connection, bootstrap_servers=controllers), controllers=True)
