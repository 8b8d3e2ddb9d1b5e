"""Checks what a registry has acknowledged against the topic that it leaves."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from barnabas.registry.errors import STORE_ERROR, UNKNOWN_LEADER, RegistryError
from barnabas.registry.kafka.store import KafkaStore
from barnabas.registry.service import Done
from barnabas.registry.store.encoding import decode_key, decode_value
from barnabas.registry.store.records import SchemaKey, SchemaValue
from support.registry_format import text
from support.registry_member import Member, new_store, registering

TRY_AGAIN = {STORE_ERROR, UNKNOWN_LEADER}


@dataclass
class Acknowledged:
    """Registrations that were answered with an id."""

    ids: dict[tuple[str, str], int] = field(default_factory=dict)
    """By subject and text."""
    tries: int = 0

    def note(self, subject: str, schema: str, schema_id: int) -> None:
        """One more; another id for the same is a fork."""
        assert self.ids.setdefault((subject, schema), schema_id) == schema_id, (subject, schema)

    async def write(self, members: list[Member], name: str, until: asyncio.Event) -> None:
        """Register one schema after another, each until it is acknowledged.

        It is asked for at any instance, then where that one says that the leader is. Half of the
        schemas are those of the other writers, so that they get one id.
        """
        count = 0
        while not until.is_set():
            schema = text("shared" if count % 2 else name, str(count))
            await self._until_acknowledged(members, f"subject-{count % 7}", schema, count)
            count += 1

    async def _until_acknowledged(
        self, members: list[Member], subject: str, schema: str, which: int
    ) -> None:
        at = members[which % len(members)]
        while True:
            self.tries += 1
            answer = await _ask(at, subject, schema)
            if "id" in answer:
                self.note(subject, schema, answer["id"])
                return
            which += 1
            by_url = {member.url: member for member in members}
            at = by_url.get(answer.get("forward", ""), members[which % len(members)])
            await asyncio.sleep(0.02)  # as a client would, before it asks again

    async def write_at(self, stores: list[KafkaStore], subject: str, schema: str) -> None:
        """Register at whichever store leads, until it is acknowledged."""
        while True:
            for store in stores:
                self.tries += 1
                try:
                    done = await store.write(registering(subject, schema))
                except RegistryError as error:
                    if error.code not in TRY_AGAIN:
                        raise
                else:
                    if isinstance(done, Done):
                        self.note(subject, schema, done.response.id)
                        return
            await asyncio.sleep(0.02)  # as a client would, before it asks again

    async def check(self, bootstrap: str, topic: str) -> KafkaStore:
        """Every acknowledged registration is in the topic, and no id has two schemas.

        Returns a running store that has read it; the caller stops it.
        """
        store = new_store(bootstrap, topic, 1)
        await store.start()
        state = store.view.state
        for (subject, schema), schema_id in self.ids.items():
            found = [value.id for value in state.versions(subject) if value.text == schema]
            assert found == [schema_id], (subject, schema, schema_id, found)
        return store


async def _ask(member: Member, subject: str, schema: str) -> dict[str, Any]:
    """An answer; nothing when the process is gone, or is paused."""
    try:
        async with asyncio.timeout(1.0):
            answer = await member.register(subject, schema)
    except (ConnectionError, TimeoutError):
        return {}
    assert answer.get("error") in (None, *TRY_AGAIN), answer
    return answer


def check_records(records: list[tuple[bytes | None, bytes | None]]) -> int:
    """No id, and no version of a subject, was ever given to two schemas. Returns their number."""
    by_id: dict[int, str] = {}
    by_version: dict[SchemaKey, str] = {}
    for key_data, value_data in records:
        key = decode_key(key_data)
        if isinstance(key, SchemaKey):
            value = decode_value(key, value_data)
            assert isinstance(value, SchemaValue)
            assert by_id.setdefault(value.id, value.text) == value.text, value
            assert by_version.setdefault(key, value.text) == value.text, value
    return len(by_version)
