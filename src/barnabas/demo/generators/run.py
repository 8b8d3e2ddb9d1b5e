"""A run of the generator: simulate, publish at the right moment, keep checkpoints.

Exactly where it was: a checkpoint of minute m is written once every record up to m is acknowledged.
A run that is killed sends what came after its checkpoint again, with the same event ids, so the
pipeline's de-duplication counts it once; a run that is stopped has nothing to send again.

Bounded lateness: no record of minute m is sent before everything up to minute m - IN_FLIGHT_MINUTES
is acknowledged. However slow a broker or a partition is, an event therefore arrives for the first
time at most LATE_MS_MAX + (IN_FLIGHT_MINUTES + 1) minutes after the newest one, which is within the
watermark's delay, and no event is ever dropped as too late.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections import deque
from collections.abc import Callable
from contextlib import closing
from threading import Event as Flag
from typing import Any, Final

from confluent_kafka.cimpl import NewTopic

from barnabas.demo.access import client_config
from barnabas.demo.contract import (
    CHECKPOINT_FILE,
    TOPIC_PARTITIONS,
    TRUTH_FILE,
    GeneratorProgress,
    Plan,
    Truth,
)
from barnabas.demo.database.stations import DatabaseError, StationsInDatabase
from barnabas.demo.generators.charging import FIRMWARE_EVERY_MINUTES
from barnabas.demo.generators.delivery import LATE_MS_MAX, Delivery
from barnabas.demo.generators.encoding import AvroEncoder
from barnabas.demo.generators.publisher import Publisher
from barnabas.demo.generators.simulation import World, events_planned
from barnabas.demo.topics import MINUTE_MS, STATIONS, WATERMARK_DELAY_MS, Station
from barnabas.kafka.admin import Admin

_TIMEOUT_SECONDS = 60.0
_FORMAT_VERSION = 2


def ensure_topics(bootstrap_servers: str) -> list[str]:
    """Create those of the demo's topics that do not exist and return their names.

    The cluster's default decides how many replicas they have.
    Raises confluent_kafka.KafkaException where the cluster refuses or cannot be reached.
    """
    settings = {**client_config(bootstrap_servers), "socket.timeout.ms": 10_000}
    topics = [
        NewTopic(
            name,
            num_partitions=partitions,
            config={"cleanup.policy": "compact"} if name == STATIONS else {},
        )
        for name, partitions in TOPIC_PARTITIONS.items()
    ]
    return Admin(settings, _TIMEOUT_SECONDS).create(topics)


IN_FLIGHT_MINUTES: Final = 4
assert LATE_MS_MAX + (IN_FLIGHT_MINUTES + 1) * MINUTE_MS < WATERMARK_DELAY_MS

_CHECKPOINT_SECONDS: Final = 1.0
_REPORT_SECONDS: Final = 1.0
_PACE_SECONDS: Final = 0.02
_STOP_SECONDS_MAX: Final = 10.0
_DATABASE_SECONDS_MAX: Final = 10.0

Report = Callable[[GeneratorProgress], None]


def publish_tables(
    bootstrap_servers: str,
    registry_url: str,
    plan: Plan,
    database: StationsInDatabase | None = None,
) -> None:
    """Create the topics, register their schemas and publish the station table (idempotent).

    The topics and rows that statements need. With a database the table is created there, and change
    capture publishes it. Raises as `GeneratorRun.run` does.
    """
    ensure_topics(bootstrap_servers)
    stations = World(plan).stations
    with closing(AvroEncoder(registry_url)) as encoder:
        encoder.register()
        if database is not None:
            database.add(stations)
        else:
            Publisher(bootstrap_servers, encoder.encode).publish_stations(stations)


class UnfinishedError(Exception):
    """Asked to stop, but the cluster does not acknowledge what was sent."""


class GeneratorRun:
    """Publishes a plan's events from where its state directory stands.

    With `paced=False` everything is sent as fast as the cluster takes it.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        registry_url: str,
        state_directory: str,
        plan: Plan,
        *,
        paced: bool = True,
        database: StationsInDatabase | None = None,
    ) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._database = database
        self._stations: list[Station] = []
        """The station table as it was put last."""
        self._registry_url = registry_url
        self._directory = state_directory
        self._paced = paced
        self._world = load_or_create(state_directory, plan)
        self._checkpoints: deque[tuple[int, dict[str, Any], Truth]] = deque()
        self._events_acknowledged = self._world.events
        self._events_planned = events_planned(plan)
        self._checkpointed_at = 0.0
        self._refused = ""
        self._stop = Flag()
        self._stop_deadline = math.inf

    def stop(self) -> None:
        """Ask `run` to end cleanly; safe from a signal handler or another thread."""
        self._stop_deadline = time.monotonic() + _STOP_SECONDS_MAX
        self._stop.set()

    def run(self, report: Report = lambda progress: None) -> Truth:
        """Publish until the plan is done or `stop` is called; returns the truth.

        Raises PublishError or confluent_kafka.KafkaException where the cluster refuses,
        SchemaRegistryError where the registry does, DatabaseError where PostgreSQL does or stays
        away, and UnfinishedError where the cluster does not acknowledge the rest within 10 seconds
        after `stop`.
        """
        world = self._world
        if not world.at_end:
            ensure_topics(self._bootstrap_servers)
            with closing(AvroEncoder(self._registry_url)) as encoder:
                self._run(world, encoder, report)
        truth = world.truth()
        store(self._directory, world.snapshot(), truth)
        self._events_acknowledged = world.events
        report(self._progress())
        return truth

    def _run(self, world: World, encoder: AvroEncoder, report: Report) -> None:
        encoder.register()
        self._evolve_if_due(world, encoder)
        publisher = Publisher(self._bootstrap_servers, encoder.encode)
        self._put_stations(world, publisher)
        self._publish(world, publisher, encoder, report)
        publisher.begin_step(world.minutes + 1)
        for delivery in world.release_held():
            publisher.publish(world.minutes + 1, delivery)
        self._wait_through(world.minutes + 1, publisher)
        if self._database is not None:
            self._database.put_patiently(world.stations, _DATABASE_SECONDS_MAX)

    def _put_stations(self, world: World, publisher: Publisher) -> None:
        self._stations = world.stations
        if self._database is None:
            publisher.publish_stations(self._stations)
        else:
            self._database.put_patiently(self._stations, _DATABASE_SECONDS_MAX)

    def _change_stations(self, world: World, publisher: Publisher) -> None:
        """Put rows that are not as they were; those of a database that is away, the next time."""
        now = world.stations
        changed = [row for row, old in zip(now, self._stations, strict=True) if row != old]
        if self._database is None:
            publisher.change_stations(changed)
        elif changed:
            try:
                self._database.put(changed)
            except DatabaseError:
                return
        self._stations = now

    def _publish(
        self, world: World, publisher: Publisher, encoder: AvroEncoder, report: Report
    ) -> None:
        clock = _Pace(world.time_ms, world.plan["acceleration"] if self._paced else None)
        reported_at = time.monotonic()
        while not world.at_end and not self._stop.is_set():
            self._evolve_if_due(world, encoder)
            deliveries = world.step()
            step = world.minutes
            # A minute that has begun is finished even when asked to stop: the checkpoint holds
            # whole minutes.
            self._wait_through(step - IN_FLIGHT_MINUTES, publisher)
            publisher.begin_step(step)
            if step % FIRMWARE_EVERY_MINUTES == 0:
                self._change_stations(world, publisher)
            for delivery in deliveries:
                if not self._stop.is_set():
                    clock.wait_for(delivery, publisher)
                publisher.publish(step, delivery)
            self._checkpoint(world, publisher)
            if time.monotonic() - reported_at >= _REPORT_SECONDS:
                reported_at = time.monotonic()
                report(self._progress())

    def _evolve_if_due(self, world: World, encoder: AvroEncoder) -> None:
        if world.has_evolved and not encoder.evolved:
            self._refused = encoder.evolve(world.evolves_ms)

    def _checkpoint(self, world: World, publisher: Publisher) -> None:
        if time.monotonic() - self._checkpointed_at >= _CHECKPOINT_SECONDS:
            self._checkpointed_at = time.monotonic()
            self._checkpoints.append((world.minutes, world.snapshot(), world.truth()))
        publisher.poll(0)
        latest = None
        while self._checkpoints and publisher.is_acknowledged(self._checkpoints[0][0]):
            latest = self._checkpoints.popleft()
        if latest is not None:
            _, snapshot, truth = latest
            store(self._directory, snapshot, truth)
            self._events_acknowledged = sum(truth["events"].values())

    def _wait_through(self, step: int, publisher: Publisher) -> None:
        if not publisher.wait_through(step, lambda: time.monotonic() > self._stop_deadline):
            raise UnfinishedError(
                "stopped while the cluster acknowledges nothing; the next run goes on from "
                "the last checkpoint"
            )

    def _progress(self) -> GeneratorProgress:
        world = self._world
        minutes = world.minutes_planned
        return {
            "published": self._events_acknowledged,
            "planned": self._events_planned,
            "fraction": None if minutes is None else min(1.0, world.minutes / max(1, minutes)),
            "event_time_ms": world.time_ms,
            "done": world.at_end,
            "evolved_ms": world.evolves_ms if world.has_evolved else None,
            "refused": self._refused,
        }


class _Pace:
    """Lets a record go when its time has come; event time runs `acceleration` times as fast."""

    def __init__(self, start_ms: int, acceleration: int | None) -> None:
        self._start_ms = start_ms
        self._acceleration = acceleration
        self._started_at = time.monotonic()

    def wait_for(self, delivery: Delivery, publisher: Publisher) -> None:
        if self._acceleration is None:
            return
        due = (delivery.publish_ms - self._start_ms) / 1000 / self._acceleration
        ahead = due - (time.monotonic() - self._started_at)
        if ahead > _PACE_SECONDS:
            self._sleep(ahead, publisher)

    def _sleep(self, seconds: float, publisher: Publisher) -> None:
        until = time.monotonic() + seconds
        # A flood of acknowledgements does not end the wait early, nor does it go unserved.
        while (left := until - time.monotonic()) > 0:
            publisher.poll(min(left, 0.25))


class StateMismatchError(ValueError):
    """The state directory belongs to a run with another plan."""


def load_or_create(directory: str, plan: Plan) -> World:
    """Return the world at the last checkpoint in `directory`, or a new one.

    A plan may be continued with another number of seconds, everything else must be the same:
    raises StateMismatchError otherwise.
    """
    os.makedirs(directory, exist_ok=True)
    try:
        with open(os.path.join(directory, CHECKPOINT_FILE), encoding="utf-8") as file:
            stored = json.load(file)
    except FileNotFoundError:
        return World(plan)
    kept = stored["world"]["plan"]
    for name in ("seed", "rate", "acceleration"):
        if stored["version"] != _FORMAT_VERSION or kept[name] != plan[name]:
            raise StateMismatchError(
                f"{directory} holds a run with {kept}, which cannot go on as {dict(plan)}; "
                "use the same values or another directory"
            )
    stored["world"]["plan"] = plan
    return World.restore(stored["world"])


def store(directory: str, snapshot: dict[str, Any], truth: Truth) -> None:
    """Write checkpoint and truth, both of the same moment."""
    replace_json(os.path.join(directory, TRUTH_FILE), truth)
    replace_json(
        os.path.join(directory, CHECKPOINT_FILE), {"version": _FORMAT_VERSION, "world": snapshot}
    )


def replace_json(path: str, value: Any) -> None:
    """Write `value` to `path` so that a reader, or a restart, finds the old or the new, whole."""
    partial = f"{path}.partial"
    with open(partial, "w", encoding="utf-8") as file:
        json.dump(value, file, separators=(",", ":"))
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)
