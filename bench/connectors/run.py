"""One round of the connectors, with Barnabas brokers."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final

from bench.barnabas_server import BarnabasServer
from bench.settings import Settings
from bench.wire import produce_first

CONNECTOR_NAMES: Final = (
    "connect-file",
    "connect-mirror",
    "connect-postgres",
    "connect-jdbc",
    "connect-lake",
    "connect-s3",
    "connect-flow",
)
Figures = dict[str, dict[str, float]]
Noting = Callable[[str], AbstractContextManager[None]]
Note = Callable[[str, dict[str, float]], None]


def connector_round(
    number: int, settings: Settings, only: set[str], noting: Noting, note: Note
) -> None:
    """Each connector once, with Kafka's worker, ours, and the plain driver where there are such.

    `noting` reports a failure and goes on, `note` takes figures by the runner's name.
    """
    for name in CONNECTOR_NAMES:
        if name not in only:
            continue
        print(f"Round {number + 1} of {settings.rounds}: {name}", flush=True)
        directory = settings.directory / name
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        with noting(name):
            for runner, figures in _measure(name, directory, settings, number).items():
                print(f" {runner}", flush=True)
                note(runner, figures)
        shutil.rmtree(directory, ignore_errors=True)


def _measure(name: str, directory: Path, settings: Settings, number: int) -> Figures:
    # Imported when they are used: they need what an installation may lack.
    if name == "connect-s3":
        from bench.connectors.s3 import s3_round

        return s3_round(settings)
    if name == "connect-flow":
        from bench.connectors.flow import flow_round

        return flow_round(settings)
    with _broker(directory / "broker") as port:
        if name == "connect-file":
            from bench.connectors.file import file_round

            return file_round(port, directory, settings, number)
        if name == "connect-postgres":
            from bench.connectors.postgres import postgres_round

            return postgres_round(port, directory, settings, number)
        if name == "connect-jdbc":
            from bench.connectors.jdbc import jdbc_round

            return jdbc_round(port, directory, settings, number)
        if name == "connect-lake":
            from bench.connectors.lake import lake_round

            return lake_round(port, directory, settings, number)
        from bench.connectors.mirroring import mirror_round

        with _broker(directory / "target") as target:
            return mirror_round(port, target, directory, settings, number)


@contextmanager
def _broker(directory: Path) -> Iterator[int]:
    with BarnabasServer(directory) as broker:
        broker.format()
        broker.start()
        produce_first(broker.port, "bench-first")
        yield broker.port
