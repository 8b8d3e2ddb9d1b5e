"""`barnabas log`: the files that nodes keep their data in."""

import json
import sys

import click

from barnabas.cli.errors import ExitCode
from barnabas.cli.log_dirs import dirs_command
from barnabas.cli.output import json_option

DAMAGE = "damage"


@click.group()
def command() -> None:
    """Inspect log files, and the log directories of brokers."""


@command.command(
    "dump",
    epilog="\b\nExamples:\n  barnabas log dump data/orders-0\n"
    "  barnabas log dump data/orders-0/00000000000000000000.log --records\n"
    "  barnabas log dump data/__cluster_metadata-0 --records --json\n",
)
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True))
@click.option("--records", "-r", is_flag=True, help="Show the records of batches too.")
@click.option("--undecoded", is_flag=True, help="Show records of Kafka's internal topics as bytes.")
@json_option
def dump_command(paths: tuple[str, ...], records: bool, undecoded: bool, as_json: bool) -> int:
    """Show what log, index, snapshot and checkpoint files hold.

    PATHS are files or directories, written by this node or by Apache Kafka. This command
    only reads them, so it does not disturb a running node. With --json it prints an object per
    line. Exit code 5 if something is damaged.
    """
    from barnabas.base.local_disk import LocalDisk
    from barnabas.node.log.dump import dump_path, render

    disk = LocalDisk()
    damaged = False
    try:
        for path in paths:
            for entry in dump_path(disk, path, records=records, decode=not undecoded):
                damaged = damaged or entry["kind"] == DAMAGE
                line = json.dumps(entry, ensure_ascii=False) if as_json else render(entry)
                sys.stdout.write(line + "\n")
    finally:
        disk.close()
    return ExitCode.PROBLEMS if damaged else ExitCode.DONE


command.add_command(dirs_command)
