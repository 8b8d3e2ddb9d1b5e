"""One round of the registries, over one broker of ours."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from bench.barnabas_server import BarnabasServer
from bench.registry.schemas import fill_topic
from bench.registry.servers import Karapace, OwnRegistry, Registry
from bench.registry.workloads import REGISTRY_WORKLOADS, start, start_empty
from bench.settings import Settings
from bench.wire import produce_first

REGISTRY_NAMES = ("registry-start", *REGISTRY_WORKLOADS)
Noting = Callable[[str], AbstractContextManager[None]]
Note = Callable[[str, dict[str, float]], None]


def registry_round(
    number: int,
    settings: Settings,
    karapace: Path | None,
    only: set[str],
    noting: Noting,
    note: Note,
) -> None:
    """Each registry once; who is first changes with the round.

    `noting` tells of a failure and goes on, `note` takes figures by the registry's name.
    """
    names = ["barnabas"] if karapace is None else ["karapace", "barnabas"]
    if number % 2:
        names.reverse()
    with noting("the registries' broker"), BarnabasServer(settings.directory / "broker") as broker:
        broker.format()
        broker.start()
        produce_first(broker.port, "bench-first")
        for name in names:
            print(f"Round {number + 1} of {settings.rounds}: registry of {name}", flush=True)
            with noting(f"registry of {name}"):
                _measure(name, broker.bootstrap, settings, karapace, only, note)


def _measure(
    name: str,
    bootstrap: str,
    settings: Settings,
    karapace: Path | None,
    only: set[str],
    note: Note,
) -> None:
    def registry(topic: str) -> Registry:
        directory = settings.directory / f"registry-{name}"
        if name == "barnabas":
            return OwnRegistry(directory, bootstrap, topic)
        assert karapace is not None
        return Karapace(directory, bootstrap, topic, karapace)

    fill_topic(bootstrap, f"_empty_{name}", 0)
    fill_topic(bootstrap, f"_schemas_{name}", settings.registry_schemas)
    if "registry-start" in only:
        with registry(f"_empty_{name}") as empty:
            note(name, start_empty(empty, settings))
    with registry(f"_schemas_{name}") as full:
        note(name, start(full, settings))
        for key, workload in REGISTRY_WORKLOADS.items():
            if key in only:
                note(name, workload(full, settings))
