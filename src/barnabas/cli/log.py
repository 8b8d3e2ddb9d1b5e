"""`barnabas log`: the files that nodes keep their data in."""

import json
import sys
from typing import Any

import click

from barnabas.cli.connection import Connection, connection_options
from barnabas.cli.errors import CliError, ExitCode
from barnabas.cli.output import Output, Row, json_option
from barnabas.cli.reaching import reached
from barnabas.cli.units import format_bytes

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


# `barnabas log dirs`: the log directories of brokers, and what lies in them (KIP-113).


@click.command(
    "dirs",
    epilog="\b\nExamples:\n  barnabas log dirs\n"
    "  barnabas log dirs --broker-list 1,2 --topic-list orders --replicas\n",
)
@click.option("--broker-list", metavar="ID,...", help="Only these brokers; by default all.")
@click.option("--topic-list", metavar="TOPIC,...", help="Only these topics; by default all.")
@click.option("--replicas", is_flag=True, help="A row for each replica instead of each directory.")
@connection_options
def dirs_command(
    connection: Connection,
    broker_list: str | None,
    topic_list: str | None,
    replicas: bool,
    as_json: bool,
) -> int:
    """Show the log directories of brokers and their sizes.

    With --json each directory has its replicas. Exit code 5 if a directory has failed.
    """
    from barnabas.cli.admin import partitions

    brokers = _ids(broker_list)
    topics = None if topic_list is None else [part.strip() for part in topic_list.split(",")]
    with reached(connection) as admin:
        chosen = admin.cluster().live if brokers is None else brokers
        keys = None if topics is None else [state.key for state in partitions(admin, topics)]
        found = [row for broker in chosen for row in _read(admin, broker, keys)]
    output = Output(as_json)
    if as_json:
        output.result(found, "")
    elif replicas:
        _show_replicas(output, found)
    else:
        _show_directories(output, found)
    return ExitCode.PROBLEMS if any(row["error"] for row in found) else ExitCode.DONE


def _ids(text: str | None) -> list[int] | None:
    if text is None:
        return None
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise CliError(f"--broker-list {text}: must be ids such as 1,2", ExitCode.USAGE) from None


def _read(admin: Any, broker: int, keys: Any) -> list[Row]:
    from barnabas.cli.admin import describe_log_dirs_request
    from barnabas.cli.errors import from_code
    from barnabas.kafka.wire_routing import ask_broker
    from barnabas.protocol.errors import ErrorCode

    answer = admin.run(ask_broker, describe_log_dirs_request(keys), broker)
    if answer.error_code != ErrorCode.NONE:
        raise from_code(answer.error_code, None, f"node {broker}")
    return [
        {
            "broker": broker,
            "directory": result.log_dir,
            "error": None if result.error_code == 0 else ErrorCode.of(result.error_code).name,
            "total_bytes": result.total_bytes if result.total_bytes >= 0 else None,
            "usable_bytes": result.usable_bytes if result.usable_bytes >= 0 else None,
            "cordoned": result.is_cordoned,
            "replicas": [
                {
                    "partition": f"{topic.name}-{part.partition_index}",
                    "size_bytes": part.partition_size,
                    "offset_lag": part.offset_lag,
                    "future": part.is_future_key,
                }
                for topic in sorted(result.topics, key=lambda topic: topic.name)
                for part in sorted(topic.partitions, key=lambda part: part.partition_index)
            ],
        }
        for result in answer.results
    ]


def _show_directories(output: Output, found: list[Row]) -> None:
    rows = [
        {
            "broker": row["broker"],
            "directory": row["directory"],
            "replicas": len(row["replicas"]),
            "size": format_bytes(sum(item["size_bytes"] for item in row["replicas"])),
            "usable": _size(row["usable_bytes"]),
            "total": _size(row["total_bytes"]),
            "state": row["error"] or ("cordoned" if row["cordoned"] else "ok"),
        }
        for row in found
    ]
    output.rows(rows, ("broker", "directory", "replicas", "size", "usable", "total", "state"))


def _size(size_bytes: int | None) -> str | None:
    return None if size_bytes is None else format_bytes(size_bytes)


def _show_replicas(output: Output, found: list[Row]) -> None:
    rows = [
        {
            "broker": row["broker"],
            "directory": row["directory"],
            "partition": item["partition"],
            "size": item["size_bytes"],
            "lag": item["offset_lag"],
            "future": item["future"],
        }
        for row in found
        for item in row["replicas"]
    ]
    columns = ("broker", "directory", "partition", "size", "lag", "future")
    output.rows(rows, columns, "There are no replicas.")


command.add_command(dirs_command)
