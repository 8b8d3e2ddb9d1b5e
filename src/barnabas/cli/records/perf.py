"""`barnabas perf`: a load generator, as kafka-producer-perf-test and kafka-consumer-perf-test."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import click

from barnabas.base.config.properties import from_flags
from barnabas.cli.client_config import from_java, read_client_file
from barnabas.cli.connection import Connection, connection_options
from barnabas.cli.errors import CliError, ExitCode
from barnabas.cli.option_sets import Function
from barnabas.cli.output import Output
from barnabas.cli.records.positions import topic_partitions

INTERVAL_MS = 5000


@click.group()
def command() -> None:
    """Measure how fast a cluster can write and read records."""


def _common(kind: str) -> Callable[[Function], Function]:
    properties = click.option(
        f"--{kind}-props",
        "--command-property",
        "pairs",
        multiple=True,
        metavar="KEY=VALUE",
        help=f"A property of the {kind}, like -X; may be repeated.",
    )
    file = click.option(
        f"--{kind}-config",
        "path",
        type=click.Path(dir_okay=False),
        metavar="FILE",
        help=f"Properties of the {kind} in a file.",
    )
    interval = click.option(
        "--reporting-interval",
        type=click.IntRange(min=1),
        default=INTERVAL_MS,
        show_default=True,
        metavar="MS",
        help="Interval between reports.",
    )
    return lambda function: properties(file(interval(function)))


def _with_properties(connection: Connection, path: str | None, pairs: Sequence[str]) -> Connection:
    """The connection with the properties of the options above; `pairs` win."""
    from barnabas.kafka.settings import overridden

    settings = overridden({} if path is None else read_client_file(path), from_flags(pairs))
    servers = settings.pop("bootstrap.servers", None)
    config = from_java(connection.config, settings)
    chosen = connection.bootstrap_servers if servers is None else servers
    return replace(connection, config=config, bootstrap_servers=chosen)


PRODUCE_EPILOG = """\b
Examples:
  barnabas perf produce orders --num-records 100000 --record-size 1000
  barnabas perf produce orders --num-records 60000 --record-size 100 \\
    --throughput 1000 --producer-props linger.ms=5
  barnabas perf produce orders --num-records 10000 --payload-file lines.txt \\
    --transaction-duration-ms 100 --json
"""


@command.command("produce", epilog=PRODUCE_EPILOG)
@click.argument("topic")
@click.option(
    "--num-records",
    "-n",
    type=click.IntRange(min=1),
    required=True,
    help="Number of records to send.",
)
@click.option(
    "--record-size",
    type=click.IntRange(min=0),
    metavar="BYTES",
    help="Send random values of this size.",
)
@click.option(
    "--payload-file",
    type=click.Path(exists=True, dir_okay=False),
    help="Values are taken from this file at random.",
)
@click.option(
    "--payload-delimiter",
    default="\\n",
    show_default=True,
    metavar="TEXT",
    help="Separator of the values in that file.",
)
@click.option("--payload-monotonic", is_flag=True, help="Values are the numbers 0, 1, 2 …")
@click.option(
    "--throughput",
    type=float,
    default=-1.0,
    metavar="RECORDS/S",
    help="Send at most this many records per second; by default as many as possible.",
)
@click.option("--transactional-id", metavar="ID", help="Send in transactions, under this id.")
@click.option(
    "--transaction-duration-ms",
    type=click.IntRange(min=1),
    metavar="MS",
    help="Send in transactions, and commit after this time; 3000 with --transactional-id.",
)
@click.option(
    "--warmup-records",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Print a second summary without the first records.",
)
@_common("producer")
@connection_options
def produce_command(
    connection: Connection,
    topic: str,
    num_records: int,
    record_size: int | None,
    payload_file: str | None,
    payload_delimiter: str,
    payload_monotonic: bool,
    throughput: float,
    transactional_id: str | None,
    transaction_duration_ms: int | None,
    warmup_records: int,
    pairs: tuple[str, ...],
    path: str | None,
    reporting_interval: int,
    as_json: bool,
) -> None:
    """Send records and measure throughput and latency.

    Latency is the time from handing a record to the producer until its acknowledgement, with
    percentiles. Give one of --record-size, --payload-file and --payload-monotonic.
    """
    from barnabas.cli.records.perf_load import Load, Payloads, summary_line

    given = [record_size is not None, payload_file is not None, payload_monotonic]
    if sum(given) != 1:
        raise CliError(
            "give one of --record-size, --payload-file and --payload-monotonic", ExitCode.USAGE
        )
    if warmup_records >= num_records:
        raise CliError("--warmup-records must be fewer than --num-records", ExitCode.USAGE)
    if payload_file is not None:
        delimiter = payload_delimiter.encode().decode("unicode_escape")
        payloads = Payloads.of_file(payload_file, delimiter)
    elif record_size is not None:
        payloads = Payloads.random(record_size)
    else:
        payloads = Payloads.numbers()
    connection = _with_properties(connection, path, pairs)
    topic_partitions(connection, topic)
    output = Output(as_json)
    load = Load(
        connection,
        topic,
        transactional_id=transactional_id,
        transaction_duration_ms=transaction_duration_ms,
        report=None if as_json else click.echo,
        interval_ms=reporting_interval,
    )
    result = load.run(num_records, payloads.next, throughput, warmup_records)
    lines = [summary_line(result)]
    if "steady_state" in result:
        lines.append("steady state: " + summary_line(result["steady_state"]))
    output.result({"topic": topic, **result}, "\n".join(lines))


CONSUME_EPILOG = """\b
Examples:
  barnabas perf consume orders --num-records 100000
  barnabas perf consume orders --num-records 100000 --json \\
    --consumer-props fetch.min.bytes=100000
"""


@command.command("consume", epilog=CONSUME_EPILOG)
@click.argument("topic")
@click.option(
    "--num-records",
    "-n",
    type=click.IntRange(min=1),
    required=True,
    help="Number of records to read.",
)
@click.option("--group", "-g", help="Group to read in; by default a new one.")
@click.option("--from-latest", is_flag=True, help="Start at the end if the group has no offset.")
@click.option(
    "--fetch-size",
    type=click.IntRange(min=1),
    default=1 << 20,
    show_default=True,
    metavar="BYTES",
    help="Maximum size of one partition in an answer.",
)
@click.option("--show-detailed-stats", is_flag=True, help="Report at each interval.")
@_common("consumer")
@connection_options
def consume_command(
    connection: Connection,
    topic: str,
    num_records: int,
    group: str | None,
    from_latest: bool,
    fetch_size: int,
    show_detailed_stats: bool,
    pairs: tuple[str, ...],
    path: str | None,
    reporting_interval: int,
    as_json: bool,
) -> int:
    """Read records in a group and measure throughput.

    It ends after --num-records, or with exit code 1 if no record arrives for --timeout.
    """
    from barnabas.cli.records.perf_load import consumed_line, read

    if group == "":
        raise CliError("--group: the name is empty", ExitCode.USAGE)
    connection = _with_properties(connection, path, pairs)
    topic_partitions(connection, topic)
    output = Output(as_json)
    result = read(
        connection,
        topic,
        num_records,
        group=group,
        reset="latest" if from_latest else "earliest",
        fetch_size_bytes=fetch_size,
        report=click.echo if show_detailed_stats and not as_json else None,
        interval_ms=reporting_interval,
    )
    output.result({"topic": topic, **result}, consumed_line(result))
    if result["records"] < num_records:
        output.note(
            f"No record came for {connection.timeout_s:g} s: "
            f"{result['records']} of {num_records} were read."
        )
        return ExitCode.REFUSED
    return ExitCode.DONE
