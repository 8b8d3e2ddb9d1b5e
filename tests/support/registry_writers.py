"""Clients of a registry that register, evolve and delete, and what must be left of it.

Each writer has its own subjects, so that it knows what each request must answer, and one for
texts that others register too. A write without a clear answer is asked for again until there is
one, at whichever instance: the model then knows exactly what is stored. The first try may be done
later still, as it may wait in a paused instance. That changes nothing as long as nothing else is
done with the subject, so the writer goes on with another one.
"""

from __future__ import annotations

import contextlib
import json
import random
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import httpx

from support.node_process import wait_until
from support.patience import PATIENCE_S
from support.registry_process import RegistryProcess

Place = tuple[str, int]
"""A subject and a version."""
SUBJECTS = 4
SHARED_TEXTS = 40
GONE = {40401, 40402, 40404, 40406}
"""The answer to a deletion that was done before."""


def record(name: str) -> str:
    """A schema, as it is stored."""
    body = {"type": "record", "name": name, "fields": [{"name": "a", "type": "int"}]}
    return json.dumps(body, separators=(",", ":"))


@dataclass
class Model:
    """The sum of all acknowledged writes."""

    ids: dict[Place, int] = field(default_factory=dict)
    """Of all versions that ever were."""
    texts: dict[int, str] = field(default_factory=dict)
    ids_of_texts: dict[str, int] = field(default_factory=dict)
    deleted: set[Place] = field(default_factory=set)
    """Softly, or for good."""
    removed: set[Place] = field(default_factory=set)
    """For good."""
    writes: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note_registered(self, place: Place, schema_id: int, text: str) -> None:
        """A text has an id in a version: the only one, of all times."""
        with self.lock:
            assert self.texts.setdefault(schema_id, text) == text, (place, schema_id)
            assert self.ids_of_texts.setdefault(text, schema_id) == schema_id, (place, schema_id)
            assert self.ids.setdefault(place, schema_id) == schema_id, (place, schema_id)
            self.writes += 1

    def note_deleted(self, *places: Place) -> None:
        """Versions are deleted softly."""
        with self.lock:
            self.deleted.update(places)
            self.writes += 1

    def note_removed(self, place: Place) -> None:
        """A version is deleted for good."""
        with self.lock:
            self.removed.add(place)
            self.writes += 1

    def versions(self, subject: str) -> list[int]:
        """Those of a subject that are not deleted."""
        return [place[1] for place in self._of(subject) if place not in self.deleted]

    def last_version(self, subject: str) -> int:
        """The highest that the subject ever had."""
        return max((place[1] for place in self._of(subject)), default=0)

    def _of(self, subject: str) -> list[Place]:
        with self.lock:
            return sorted(place for place in self.ids if place[0] == subject)


class RegistryWriters:
    """Writers at work while the block lasts; one that sees what must not be ends the test.

    `is_patient` says whether errors and lost connections are tried again, or must not be seen.
    """

    def __init__(
        self, instances: Sequence[RegistryProcess], count: int, *, is_patient: bool
    ) -> None:
        self.instances = instances
        self.is_patient = is_patient
        self.model = Model()
        self.tried_again = 0
        self._count = count
        self._stopping = threading.Event()
        self._pool = ThreadPoolExecutor(count)
        self._writers: list[Future[None]] = []

    def __enter__(self) -> RegistryWriters:
        with httpx.Client(trust_env=False, timeout=PATIENCE_S) as client:
            body = {"compatibility": "NONE"}
            wait_until(
                lambda: client.put(f"{self.instances[0].url}/config", json=body).is_success,
                "the first write",
            )
        self._writers = [
            self._pool.submit(Writer(self, number).run, self._stopping)
            for number in range(self._count)
        ]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopping.set()
        self._pool.shutdown()
        if error is None:
            self._raise_faults()

    def _raise_faults(self) -> None:
        for writer in self._writers:
            if writer.done():
                writer.result()

    def progress(self, count: int) -> None:
        """Wait until that many more writes are acknowledged."""
        wanted = self.model.writes + count

        def is_done() -> bool:
            self._raise_faults()
            return self.model.writes >= wanted

        wait_until(is_done, f"{count} writes")

    def check(self, instances: Sequence[RegistryProcess]) -> None:
        """Hold what instances answer against the model; the writers have ended."""
        model = self.model
        expected = {
            place: (schema_id, model.texts[schema_id])
            for place, schema_id in model.ids.items()
            if place not in model.removed
        }
        live = {p: found for p, found in expected.items() if p not in model.deleted}
        for instance in instances:
            with contextlib.suppress(AssertionError):  # the next one shows the difference
                wait_until(lambda at=instance: stored(at, "") == live, f"{instance.url} has all")
            assert stored(instance, "") == live
            assert stored(instance, "deleted=true&") == expected


def stored(instance: RegistryProcess, query: str) -> dict[Place, tuple[int, str]]:
    """Ids and texts of what an instance lists."""
    found: dict[Place, tuple[int, str]] = {}
    with httpx.Client(trust_env=False, timeout=PATIENCE_S) as client:
        while True:
            url = f"{instance.url}/schemas?{query}offset={len(found)}&limit=1000"
            page = client.get(url).raise_for_status().json()
            found |= {(one["subject"], one["version"]): (one["id"], one["schema"]) for one in page}
            if len(page) < 1000:
                return found


class Writer:
    """One client, and the subjects that nobody else writes."""

    def __init__(self, writers: RegistryWriters, number: int) -> None:
        self.writers = writers
        self.model = writers.model
        self.number = number
        self.choose = random.Random(number)
        self.count = 0
        self.subjects = [f"w{number}-{n}" for n in range(SUBJECTS)]

    def run(self, stopping: threading.Event) -> None:
        actions: dict[Callable[[], None], int] = {
            self._register: 6,
            self._register_shared: 2,
            self._delete_version: 2,
            self._delete_subject: 1,
            self._remove_version: 1,
        }
        with httpx.Client(trust_env=False, timeout=2 * PATIENCE_S) as self.client:
            while not stopping.is_set():
                (action,) = self.choose.choices([*actions], [*actions.values()])
                action()
                self.count += 1

    def _register(self) -> None:
        subject = self.choose.choice(self.subjects)
        text = record(f"R{self.number}_{self.count}")
        last_version = self.model.last_version(subject)
        found = self._ask_of(subject, "POST", "/versions", {"schema": text})
        assert found["version"] == last_version + 1, found
        self.model.note_registered((subject, found["version"]), found["id"], text)

    def _register_shared(self) -> None:
        subject = f"shared-{self.number}"
        text = record(f"S{self.choose.randrange(SHARED_TEXTS)}")
        found, _ = self._ask("POST", f"/subjects/{subject}/versions", {"schema": text})
        self.model.note_registered((subject, found["version"]), found["id"], text)

    def _delete_version(self) -> None:
        subject = self.choose.choice(self.subjects)
        versions = self.model.versions(subject)
        if not versions:
            return
        version = self.choose.choice(versions)
        self._ask_of(subject, "DELETE", f"/versions/{version}", expected=version)
        self.model.note_deleted((subject, version))

    def _delete_subject(self) -> None:
        subject = self.choose.choice(self.subjects)
        versions = self.model.versions(subject)
        if not versions:
            return
        self._ask_of(subject, "DELETE", "", expected=versions)
        self.model.note_deleted(*((subject, version) for version in versions))

    def _remove_version(self) -> None:
        subject = self.choose.choice(self.subjects)
        with self.model.lock:
            places = [p for p in self.model.deleted - self.model.removed if p[0] == subject]
        if not places:
            return
        place = min(places)
        path = f"/versions/{place[1]}?permanent=true"
        self._ask_of(subject, "DELETE", path, expected=place[1])
        self.model.note_removed(place)

    def _ask_of(
        self, subject: str, method: str, path: str, body: Any = None, *, expected: Any = None
    ) -> Any:
        """Ask for a change of an own subject; `expected` is what a deletion answers."""
        found, is_again = self._ask(method, f"/subjects/{subject}{path}", body)
        if is_again:
            self.subjects[self.subjects.index(subject)] = f"w{self.number}-{self.count}-again"
        if expected is not None and found != expected:
            assert is_again, (subject, path, found, expected)
            assert found["error_code"] in GONE, (subject, path, found, expected)
        return found

    def _ask(self, method: str, path: str, body: Any = None) -> tuple[Any, bool]:
        """A clear answer, and whether it was asked for more than once."""
        what = f"{method} {path}"
        instances = self.writers.instances
        unclear: list[str] = []
        clear: list[httpx.Response] = []

        def is_answered() -> bool:
            at = instances[(self.number + self.count + len(unclear)) % len(instances)]
            try:
                answer = self.client.request(method, f"{at.url}{path}", json=body)
            except httpx.HTTPError as error:
                unclear.append(repr(error))
            else:
                if answer.status_code < 500:
                    clear.append(answer)
                    return True
                unclear.append(answer.text)
            assert self.writers.is_patient, f"{what}: {unclear[-1]}"
            self.writers.tried_again += 1
            return False

        wait_until(is_answered, what, 2 * PATIENCE_S, lambda: unclear[-1])
        (answer,) = clear
        assert answer.is_success or unclear, f"{what}: {answer.text}"
        return answer.json(), bool(unclear)
