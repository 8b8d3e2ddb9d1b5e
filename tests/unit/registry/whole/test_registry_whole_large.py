"""Large schemas: the event loop answers others while one is judged in a thread."""

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from barnabas.registry.core.decision import View
from barnabas.registry.errors import RegistryError
from barnabas.registry.http.app import RegistryApp
from barnabas.registry.http.config import HttpConfig
from barnabas.registry.large_work import LARGE_BYTES, WAITING_MAX, LargeWork
from barnabas.schemas.formats import FormatTable, all_formats
from barnabas.schemas.schema import ParsedSchema, ResolvedReference
from support.registry_http import Reply, ask
from support.registry_service import MemoryService
from support.registry_whole import avro_record, request

LARGE = avro_record("R", *((f"field{number}", "int", 0) for number in range(LARGE_BYTES // 40)))


class WaitingFormats:
    """The real formats; apart, they parse nothing before they are let."""

    def __init__(self, table: FormatTable, let: threading.Event, is_apart: bool = False) -> None:
        self.table = table
        self.let = let
        self.is_apart = is_apart
        self.threads: list[str] = []

    def types(self) -> Sequence[str]:
        return self.table.types()

    def parse(
        self,
        schema_type: str,
        text: str,
        references: Sequence[ResolvedReference] = (),
        *,
        is_new: bool = False,
    ) -> ParsedSchema:
        assert self.is_apart == (threading.current_thread() is not threading.main_thread())
        if self.is_apart:
            assert self.let.wait(30)
        return self.table.parse(schema_type, text, references, is_new=is_new)

    def apart(self) -> "WaitingFormats":
        return WaitingFormats(self.table.apart(), self.let, is_apart=True)


async def test_others_are_answered_while_a_large_schema_is_judged() -> None:
    let = threading.Event()
    service = MemoryService(formats=WaitingFormats(all_formats(), let))
    app = RegistryApp(service, HttpConfig(logs_requests=False))

    async def post(target: str, schema: Any) -> Reply:
        return await ask(app, "POST", target, request(schema))

    small = await post("/subjects/s/versions", avro_record("R", ("x", "int", 0)))
    assert small.status == 200
    large = [
        asyncio.create_task(post(target, LARGE))
        for target in (
            "/compatibility/subjects/s/versions?verbose=true",
            "/compatibility/subjects/s/versions/latest",
            "/subjects/s",
        )
    ]
    await asyncio.sleep(0)
    # The state goes on; what is under way does not see it.
    assert (await post("/subjects/s/versions", avro_record("R", ("y", "int", 0)))).status == 200
    assert (await ask(app, "GET", "/subjects/s/versions/latest")).json["version"] == 2
    assert not any(task.done() for task in large)
    let.set()
    verbose, latest, found = [await task for task in large]
    assert verbose.json == {"is_compatible": True, "messages": []}
    assert latest.json == {"is_compatible": True}
    assert found.code == 40403
    await app.close()


async def test_what_has_not_begun_when_it_is_closed_is_refused() -> None:
    let, began = threading.Event(), threading.Event()
    work, view = LargeWork(), MemoryService().view

    def wait(_: View) -> bool:
        began.set()
        return let.wait(30)

    first = asyncio.create_task(work.run(wait, view))
    second = asyncio.create_task(work.run(wait, view))
    await asyncio.to_thread(began.wait, 30)
    work.close()
    let.set()
    assert await first
    with pytest.raises(RegistryError) as caught:
        await second
    assert caught.value.code == 50001


async def test_not_too_many_large_ones_wait() -> None:
    let = threading.Event()
    service = MemoryService(formats=WaitingFormats(all_formats(), let))
    app = RegistryApp(service, HttpConfig(logs_requests=False))
    target, body = "/compatibility/subjects/s/versions", request(LARGE)
    asked = [asyncio.create_task(ask(app, "POST", target, body)) for _ in range(WAITING_MAX)]
    await asyncio.sleep(0)
    assert (await ask(app, "POST", target, body)).code == 50001
    let.set()
    assert {(await task).status for task in asked} == {200}
    await app.close()


@pytest.mark.parametrize(
    "target",
    [
        "/schemas/ids/1?format=resolved",
        "/schemas/ids/1?findTags=*",
        "/schemas/ids/1/schema?format=resolved",
        "/subjects/s/versions/1?format=resolved",
        "/subjects/s/versions/1/schema?format=resolved",
        "/subjects/s/metadata?format=resolved",
        "/subjects/s/metadata?format=resolved&key=k&value=v",
        "/subjects/s/versions?format=resolved",
    ],
)
async def test_large_stored_schemas_are_formatted_in_the_thread(target: str) -> None:
    let = threading.Event()
    service = MemoryService(formats=all_formats())
    body = request(LARGE) | {"metadata": {"properties": {"k": "v"}}}
    app = RegistryApp(service, HttpConfig(logs_requests=False))
    assert (await ask(app, "POST", "/subjects/s/versions", body)).status == 200
    expected = await ask(app, *_request_of(target, body))
    assert expected.status == 200
    await app.close()
    service.formats = WaitingFormats(all_formats(), let)
    app = RegistryApp(service, HttpConfig(logs_requests=False))
    asked = asyncio.create_task(ask(app, *_request_of(target, body)))
    await asyncio.sleep(0)
    assert (await ask(app, "GET", "/subjects")).status == 200
    assert not asked.done()
    let.set()
    assert (await asked).body == expected.body
    await app.close()


def _request_of(target: str, body: Any) -> tuple[str, str, Any]:
    """A list of versions cannot be asked for in a form: that is a registration."""
    is_post = "/versions?" in target
    return ("POST", target, body) if is_post else ("GET", target, None)
