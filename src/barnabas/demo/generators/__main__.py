"""Publish the demo's events: `python -m barnabas.demo.generators`, as demo/contract.py says."""

from __future__ import annotations

import json
import signal
import sys

import click
from confluent_kafka import KafkaException
from confluent_kafka.schema_registry import SchemaRegistryError

from barnabas.demo.contract import (
    DEFAULT_ACCELERATION,
    DEFAULT_RATE,
    DEFAULT_SEED,
    GeneratorProgress,
    Plan,
)
from barnabas.demo.database.stations import DatabaseError, StationsInDatabase
from barnabas.demo.generators.encoding import NotRefusedError
from barnabas.demo.generators.publisher import PublishError
from barnabas.demo.generators.run import GeneratorRun, StateMismatchError, UnfinishedError


@click.command(
    help="Publish the events of charging stations and of a shop's users, as they happen."
)
@click.option("--bootstrap", required=True, help="The cluster's host:port[,host:port].")
@click.option("--registry", required=True, help="The schema registry's URL.")
@click.option("--state-dir", required=True, help="Where checkpoint and truth are kept.")
@click.option("--seed", default=DEFAULT_SEED, show_default=True, help="All events follow from it.")
@click.option(
    "--rate",
    default=DEFAULT_RATE,
    show_default=True,
    type=click.IntRange(min=1),
    help="Events per second, as a mean over a day.",
)
@click.option(
    "--acceleration",
    default=DEFAULT_ACCELERATION,
    show_default=True,
    type=click.IntRange(min=1),
    help="Seconds of event time per second.",
)
@click.option(
    "--seconds", type=click.IntRange(min=1), help="How much to publish in all; without, no end."
)
@click.option(
    "--database-port",
    type=int,
    help="The stations are in a PostgreSQL on this port of loopback; without, in their topic.",
)
@click.option("--paced/--unpaced", default=True, help="Unpaced: as fast as the cluster takes it.")
def main(
    bootstrap: str,
    registry: str,
    state_dir: str,
    seed: int,
    rate: int,
    acceleration: int,
    seconds: int | None,
    database_port: int | None,
    paced: bool,
) -> None:
    plan: Plan = {"seed": seed, "rate": rate, "acceleration": acceleration, "seconds": seconds}
    try:
        database = None
        if database_port is not None:
            database = StationsInDatabase.of_environment(database_port)
        run = GeneratorRun(bootstrap, registry, state_dir, plan, paced=paced, database=database)
    except StateMismatchError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: run.stop())
    try:
        run.run(_print_progress)
    except (
        DatabaseError,
        PublishError,
        UnfinishedError,
        KafkaException,
        NotRefusedError,
        SchemaRegistryError,
    ) as error:
        print(f"publishing failed: {error}", file=sys.stderr)
        sys.exit(1)


def _print_progress(progress: GeneratorProgress) -> None:
    print(json.dumps(progress), flush=True)


if __name__ == "__main__":
    main()
