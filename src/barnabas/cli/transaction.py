"""`barnabas transaction`: transactions, and those that hang."""

import click

from barnabas.cli.connection import Connection, connection_options
from barnabas.cli.errors import CliError, ExitCode
from barnabas.cli.output import Output, Row, row_of
from barnabas.cli.prompts import confirm
from barnabas.cli.reaching import reached

MINUTE_MS = 60_000
PRODUCER = ("producer_id", "producer_epoch", "coordinator_epoch")


@click.group()
def command() -> None:
    """Show transactions; find and abort those that hang."""


@command.command(
    "list",
    epilog="\b\nExamples:\n  barnabas transaction list\n"
    "  barnabas transaction list --state Ongoing --duration-filter 60000\n",
)
@click.option(
    "--state", "states", multiple=True, help="Only in this state, such as Ongoing; may be repeated."
)
@click.option(
    "--producer-id", "producer_ids", multiple=True, type=int, help="Only of this producer."
)
@click.option(
    "--duration-filter",
    type=click.IntRange(min=0),
    metavar="MS",
    help="Only transactions that have been open for longer than this.",
)
@click.option(
    "--transactional-id-pattern",
    "pattern",
    metavar="REGEX",
    help="Only ids that match; the broker reads it as RE2.",
)
@connection_options
def list_command(
    connection: Connection,
    states: tuple[str, ...],
    producer_ids: tuple[int, ...],
    duration_filter: int | None,
    pattern: str | None,
    as_json: bool,
) -> None:
    """List transactional ids and their states."""
    from barnabas.kafka.transaction_admin import list_transactions

    with reached(connection) as admin:
        transactions = admin.run(
            list_transactions,
            states=states,
            producer_ids=producer_ids,
            longer_than_ms=-1 if duration_filter is None else duration_filter,
            pattern=pattern,
        )
    columns = ("transactional_id", "coordinator", "producer_id", "state")
    rows = [row_of(item, columns) for item in transactions]
    Output(as_json).rows(rows, columns, "There are no transactions.")


@command.command("describe", epilog="\b\nExample:\n  barnabas transaction describe payments-1\n")
@click.argument("names", nargs=-1, required=True, metavar="TRANSACTIONAL_ID...")
@connection_options
def describe_command(connection: Connection, names: tuple[str, ...], as_json: bool) -> None:
    """Show producer, state, age and partitions."""
    from barnabas.base.clock import now_ms
    from barnabas.kafka.transaction_admin import describe_transaction

    with reached(connection) as admin:
        described = [admin.run(describe_transaction, name) for name in names]
    now = now_ms()
    shown = (
        "transactional_id",
        "coordinator",
        "producer_id",
        "producer_epoch",
        "state",
        "timeout_ms",
        "started_ms",
    )
    rows: list[Row] = [
        {
            **row_of(item, shown),
            "duration_ms": None if item.started_ms is None else now - item.started_ms,
            "partitions": [str(place) for place in item.partitions],
        }
        for item in described
    ]
    output = Output(as_json)
    if as_json:
        output.result(rows, "")
        return
    for index, row in enumerate(rows):
        if index:
            click.echo()
        output.details(row)


@command.command(
    "describe-producers",
    epilog="\b\nExample:\n  barnabas transaction describe-producers --topic orders --partition 0\n",
)
@click.option("--topic", "-t", required=True, help="The topic.")
@click.option(
    "--partition", "-p", type=click.IntRange(min=0), required=True, help="Number of the partition."
)
@click.option("--broker-id", type=int, help="Ask this replica instead of the leader.")
@connection_options
def describe_producers_command(
    connection: Connection, topic: str, partition: int, broker_id: int | None, as_json: bool
) -> None:
    """Show the producers that a partition knows."""
    from barnabas.base.ids import TopicPartition
    from barnabas.kafka.transaction_admin import producers_of

    with reached(connection) as admin:
        producers = admin.run(producers_of, TopicPartition(topic, partition), broker_id)
    rows: list[Row] = [
        {
            **row_of(item, (*PRODUCER, "last_sequence")),
            "last_timestamp": item.last_timestamp_ms,
            "start_offset": item.start_offset,
        }
        for item in producers
    ]
    columns = tuple(rows[0]) if rows else ()
    Output(as_json).rows(rows, columns, "No producer is known.")


HANGING_EPILOG = """\b
Examples:
  barnabas transaction find-hanging
  barnabas transaction find-hanging --topic orders --max-transaction-timeout 5
"""


@command.command("find-hanging", epilog=HANGING_EPILOG)
@click.option("--topic", "-t", help="Only this topic; by default all.")
@click.option(
    "--partition", "-p", type=click.IntRange(min=0), help="Only this partition of the topic."
)
@click.option("--broker-id", type=int, help="Only replicas on this broker; by default all leaders.")
@click.option(
    "--max-transaction-timeout",
    type=click.IntRange(min=0),
    default=15,
    show_default=True,
    metavar="MINUTES",
    help="Leave out transactions that were written to within this time.",
)
@connection_options
def find_hanging_command(
    connection: Connection,
    topic: str | None,
    partition: int | None,
    broker_id: int | None,
    max_transaction_timeout: int,
    as_json: bool,
) -> int:
    """Find open transactions that no coordinator will end.

    They block read_committed consumers; `barnabas transaction abort` ends them.
    Exit code 5 if there are any.
    """
    from barnabas.base.clock import now_ms
    from barnabas.kafka.transaction_admin import find_hanging

    if partition is not None and topic is None:
        raise CliError("--partition needs --topic", ExitCode.USAGE)
    now = now_ms()
    with reached(connection) as admin:
        hanging = admin.run(
            find_hanging,
            topic=topic,
            partition=partition,
            broker=broker_id,
            timeout_ms=max_transaction_timeout * MINUTE_MS,
            now_ms=now,
        )
    rows: list[Row] = [
        {
            "topic": item.place.topic,
            "partition": item.place.partition,
            **row_of(item, (*PRODUCER, "start_offset")),
            "last_timestamp": item.last_timestamp_ms,
            "duration_min": (now - item.last_timestamp_ms) // MINUTE_MS,
        }
        for item in hanging
    ]
    columns = tuple(rows[0]) if rows else ()
    Output(as_json).rows(rows, columns, "No transaction hangs.")
    return ExitCode.PROBLEMS if rows else ExitCode.DONE


ABORT_EPILOG = """\b
Examples:
  barnabas transaction abort --topic orders --partition 0 --start-offset 1200
  barnabas transaction abort -t orders -p 0 --producer-id 7 \\
    --producer-epoch 3 --coordinator-epoch 12 --yes
"""


@command.command("abort", epilog=ABORT_EPILOG)
@click.option("--topic", "-t", required=True, help="The topic.")
@click.option(
    "--partition", "-p", type=click.IntRange(min=0), required=True, help="Number of the partition."
)
@click.option(
    "--start-offset", type=click.IntRange(min=0), help="First offset of the transaction there."
)
@click.option("--producer-id", type=int, help="Instead of the offset, with the two epochs.")
@click.option("--producer-epoch", type=int, help="See --producer-id.")
@click.option("--coordinator-epoch", type=int, help="See --producer-id.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@connection_options
def abort_command(
    connection: Connection,
    topic: str,
    partition: int,
    start_offset: int | None,
    producer_id: int | None,
    producer_epoch: int | None,
    coordinator_epoch: int | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Abort a hanging transaction in one partition.

    It writes the marker that the coordinator did not write. Do this for transactions that
    `find-hanging` shows; `terminate` is for one whose producer is gone.
    """
    from barnabas.base.ids import TopicPartition
    from barnabas.kafka.transaction_admin import abort, producers_of

    place = TopicPartition(topic, partition)
    named = [item is not None for item in (producer_id, producer_epoch, coordinator_epoch)]
    if any(named) if start_offset is not None else not all(named):
        raise CliError(
            "give --start-offset, or --producer-id, --producer-epoch and --coordinator-epoch",
            ExitCode.USAGE,
        )
    with reached(connection) as admin:
        if producer_id is None or producer_epoch is None or coordinator_epoch is None:
            known = admin.run(producers_of, place)
            open_ones = [item for item in known if item.start_offset == start_offset]
            if not open_ones:
                raise CliError(
                    f"{place}: no transaction that is open begins at offset {start_offset}",
                    ExitCode.NOT_FOUND,
                    "barnabas transaction describe-producers shows those that are",
                )
            producer_id, producer_epoch = open_ones[0].producer_id, open_ones[0].producer_epoch
            coordinator_epoch = open_ones[0].coordinator_epoch or 0
        confirm(f"Abort the transaction of producer {producer_id} in {place}?", yes)
        admin.run(abort, place, producer_id, producer_epoch, coordinator_epoch)
    value = {
        "topic": topic,
        "partition": partition,
        "producer_id": producer_id,
        "producer_epoch": producer_epoch,
        "coordinator_epoch": coordinator_epoch,
        "aborted": True,
    }
    Output(as_json).result(value, f"{place}: the transaction of producer {producer_id} is aborted")


@command.command(
    "terminate", epilog="\b\nExample:\n  barnabas transaction terminate payments-1 --yes\n"
)
@click.argument("name", metavar="TRANSACTIONAL_ID")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@connection_options
def terminate_command(connection: Connection, name: str, yes: bool, as_json: bool) -> None:
    """Abort the transaction of an id; fence its producer.

    The coordinator aborts it in all partitions. A producer that still runs with this
    transactional id fails with PRODUCER_FENCED.
    """
    from barnabas.kafka.transaction_admin import terminate

    confirm(f"Abort the transaction of {name} and fence its producer?", yes)
    with reached(connection) as admin:
        admin.run(terminate, name)
    Output(as_json).result(
        {"transactional_id": name, "terminated": True}, f"{name}: its transaction is terminated"
    )
