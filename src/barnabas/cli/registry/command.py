"""`barnabas registry`: a schema registry, and commands for any schema registry."""

import click

from barnabas.cli.registry.check import check_command
from barnabas.cli.registry.diff import diff_command
from barnabas.cli.registry.schema import get_command, register_command
from barnabas.cli.registry.settings import config_group, mode_group
from barnabas.cli.registry.start import start_command
from barnabas.cli.registry.subject import subject_group


@click.group()
def command() -> None:
    """Run a schema registry; register, check and compare schemas.

    All commands but start work with any registry that has Confluent's REST interface.
    """


@click.group("schema")
def schema_group() -> None:
    """Register, get, check and compare schemas."""


for _one in (register_command, get_command, check_command, diff_command):
    schema_group.add_command(_one)
for _one in (start_command, subject_group, schema_group, config_group, mode_group):
    command.add_command(_one)
