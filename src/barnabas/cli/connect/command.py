"""`barnabas connect`: a worker of connectors, and commands for any Connect worker."""

import click

from barnabas.cli.connect import apply, changing, listing, plugins
from barnabas.cli.connect.changing import offsets_group
from barnabas.cli.connect.start import mirror_command, start_command


@click.group()
def command() -> None:
    """Run a Connect worker; create, watch and change connectors.

    All commands but start and mirror work with any worker that has Kafka Connect's REST interface.
    """


for _one in (
    start_command,
    mirror_command,
    listing.list_command,
    listing.status_command,
    listing.show_command,
    listing.config_command,
    listing.tasks_command,
    listing.topics_command,
    changing.create_command,
    changing.patch_command,
    changing.delete_command,
    changing.pause_command,
    changing.resume_command,
    changing.stop_command,
    changing.restart_command,
    offsets_group,
    plugins.plugins_command,
    plugins.settings_command,
    plugins.validate_command,
    apply.diff_command,
    apply.apply_command,
    plugins.loggers_group,
):
    command.add_command(_one)
