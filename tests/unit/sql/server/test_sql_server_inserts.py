"""POST /inserts-stream: acknowledgements that nobody reads yet, and rows that cannot be written."""

from __future__ import annotations

import json
from typing import Any

import pytest

from barnabas.sql.server.inserts import _Progress
from support.sql_server_world import SqlWorld

STREAM = (
    "CREATE STREAM s (k STRING KEY, v INT) "
    "WITH (kafka_topic='s', value_format='JSON', partitions=1);"
)


async def test_acknowledgements_that_wait_take_no_room() -> None:
    progress = _Progress()
    progress.wrote(10**9)
    progress.wrote(1)
    answers = progress.answers()
    first = await anext(answers)
    assert (first[0]["seq"], len(first)) == (0, 1000)
    assert (await anext(answers))[0]["seq"] == 1000
    await answers.aclose()  # type: ignore[attr-defined]


async def test_the_last_answer_says_what_failed() -> None:
    progress = _Progress()
    progress.wrote(2)
    progress.fail({"message": "no"}, is_of_row=True)
    progress.end()
    found = [answer async for answers in progress.answers() for answer in answers]
    assert found == [
        {"status": "ok", "seq": 0},
        {"status": "ok", "seq": 1},
        {"status": "error", "seq": 2, "message": "no"},
    ]


async def test_whatever_fails_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    world = SqlWorld()
    await world.ksql(STREAM)

    def broken(*given: object) -> Any:
        raise RuntimeError("no memory")

    monkeypatch.setattr(world.engine.inserting, "write", broken)
    text = json.dumps({"target": "s"}) + "\n" + json.dumps({"k": "a"}) + "\n"
    answer = await world.client.post("/inserts-stream", content=text)
    (last,) = map(json.loads, answer.text.splitlines())
    assert (last["status"], last["message"]) == ("error", "no memory")
    await world.close()
