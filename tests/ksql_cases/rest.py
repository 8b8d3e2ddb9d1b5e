"""Runs ksqlDB's cases of its REST interface: `python -m tests.ksql_cases.rest DIRECTORY [FILE …]`.

DIRECTORY holds ksqlDB's rest-query-validation-tests, fetched from its repository. Each case is
requests to the application, over topics in memory, and the answers that must come.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import httpx

from barnabas.schemas.memory_registry import MemoryRegistry
from barnabas.sql.engine.cluster import NewTopic
from barnabas.sql.engine.engine import KsqlEngine
from barnabas.sql.engine.local_runner import LocalQueryRunner
from barnabas.sql.functions.catalog import Function
from barnabas.sql.server.app import KsqlApi
from barnabas.sql.testing.outcome import MismatchError, difference, equal, shown
from barnabas.sql.testing.world import World
from ksql_cases.cases import Case, load
from support.eventually import eventually
from support.memory_cluster import MemoryCluster
from support.memory_command_log import MemoryCommandLog
from support.sql_test_functions import all_functions

_TOPIC = re.compile(r"kafka_topic\s*=\s*'([^']+)'(?![^;]*partitions)", re.IGNORECASE)
_TIMEOUT_S = 3.0


class RestWorld:
    """A server in memory, and a client of it."""

    def __init__(self, case: Case, functions: dict[str, Function]) -> None:
        self.case = case
        self.properties = dict(case.content.get("properties", {}))
        self.cluster = MemoryCluster()
        self.schemas = MemoryRegistry()
        runner = LocalQueryRunner(self.cluster, functions, self.schemas)
        self.engine = KsqlEngine(
            self.cluster,
            MemoryCommandLog(),
            runner,
            functions,
            self.schemas,
            {"auto.offset.reset": "earliest", "ksql.query.push.v2.enabled": "true"},
        )
        self.engine.start()
        self.world = World(functions, {}, self.schemas, self.engine.metastore)
        self.world.add_topics(case.content.get("topics", []))
        self._make_topics()
        transport = httpx.ASGITransport(KsqlApi(self.engine).app())
        self.client = httpx.AsyncClient(transport=transport, base_url="http://ksql")

    def _make_topics(self) -> None:
        names = [name for text in self.case.statements for name in _TOPIC.findall(text)]
        names += [spec["topic"] for spec in self.case.content.get("inputs", [])]
        text = " ".join(self.case.statements)
        for name in dict.fromkeys([*self.world.topics, *names]):
            if name in self.world.topics or re.search(f"'{re.escape(name)}'", text):
                count = re.search(
                    rf"'{re.escape(name)}'[^;]*?partitions\s*=\s*(\d+)", text, re.IGNORECASE
                )
                self.cluster.create_topic(NewTopic(name, int(count[1]) if count else 1))

    async def close(self) -> None:
        await self.client.aclose()
        self.engine.close()

    async def admin(self, statements: list[str]) -> httpx.Response:
        body = {"ksql": "\n".join(statements), "streamsProperties": self.properties}
        return await self.client.post("/ksql", json=body)

    async def query(self, text: str) -> httpx.Response:
        body = {"ksql": text, "streamsProperties": self.properties}
        return await self.client.post("/query", json=body)

    async def proto(self, text: str) -> httpx.Response:
        return await self.client.post(
            "/query-stream",
            json={"sql": text, "properties": self.properties},
            headers={"accept": "application/vnd.ksql.v1+protobuf"},
        )

    def produce(self) -> None:
        for source in self.engine.metastore.sources.values():
            self.world.declared.setdefault(source.topic, source)
        for spec in self.case.content.get("inputs", []):
            self.cluster.write(*self.world.record(self._with_typed_key(spec)))

    def _with_typed_key(self, spec: dict[str, Any]) -> dict[str, Any]:
        """Keys may be written as text where the column is a number."""
        source = self.world.declared.get(spec["topic"])
        key = spec.get("key")
        if source is None or key is None:
            return spec
        whole = {c.name for c in source.schema.key if c.type.base.value in ("INTEGER", "BIGINT")}
        if isinstance(key, dict):
            typed = {n: int(v) if n.upper() in whole else v for n, v in key.items()}
            return {**spec, "key": typed}
        return {**spec, "key": int(key)} if whole and isinstance(key, str) else spec


async def run(case: Case, functions: dict[str, Function]) -> None:
    """Run a case. Raises MismatchError, or the error that occurred."""
    world = RestWorld(case, functions)
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            await _run(case, world)
    finally:
        await world.close()


async def _run(case: Case, world: RestWorld) -> None:
    statements = case.statements
    first = next((i for i, s in enumerate(statements) if s.startswith("SELECT ")), len(statements))
    answer = await world.admin(statements[:first])
    if answer.status_code != 200:
        _check_error(case, answer)
        return
    actual: list[tuple[str, Any]] = [("admin", one) for one in answer.json()]
    conditions = case.content.get("inputConditions", {})
    waits = conditions.get("waitForActivePushQuery", False)
    if not waits:
        world.produce()
    for text in statements[first:]:
        running = asyncio.create_task(world.query(text))
        if waits:
            pushed = world.engine.asking.push_queries
            await eventually(
                lambda at=running, asked=pushed: (
                    at.done() or any(push.is_started for push in asked.values())
                ),
                "the query starts or fails",
            )
            await asyncio.to_thread(world.produce)
            waits = False
        answer = await running
        if answer.status_code != 200:
            _check_error(case, answer)
            return
        actual.append(("query", answer.json()))
    if case.content.get("expectedError"):
        raise MismatchError(f"expected error {case.content['expectedError']}, got none")
    if case.content.get("testPullWithProtoFormat"):
        actual += [("queryProto", (await world.proto(s)).json()) for s in statements[first:]]
    _check_outputs(case, world)
    _check_responses(case, actual)


def _check_error(case: Case, answer: httpx.Response) -> None:
    expected = case.content.get("expectedError")
    error = answer.json()
    if expected is None:
        raise MismatchError(f"{answer.status_code} {error.get('message')}")
    if expected.get("status", answer.status_code) != answer.status_code:
        raise MismatchError(f"expected status {expected['status']}, got {answer.status_code}")
    if expected.get("message", "") not in error.get("message", ""):
        raise MismatchError(f"expected {expected['message']!r}, got {error.get('message')!r}")
    is_of_statement = expected.get("type", "").endswith("StatementErrorMessage")
    if is_of_statement and error["@type"] != "statement_error":
        raise MismatchError(f"expected a statement_error, got {error['@type']}")


def _check_outputs(case: Case, world: RestWorld) -> None:
    counts: Counter[str] = Counter()
    for source in world.engine.metastore.sources.values():
        world.world.declared.setdefault(source.topic, source)
    for spec in case.content.get("outputs", []):
        topic = spec["topic"]
        records = world.cluster.records[topic]
        if counts[topic] >= len(records):
            raise MismatchError(f"{topic}[{counts[topic]}]: nothing")
        problem = difference(shown(world.world, topic, records[counts[topic]]), spec)
        counts[topic] += 1
        if problem:
            raise MismatchError(f"{topic}[{counts[topic] - 1}]: {problem}")


def _check_responses(case: Case, actual: list[tuple[str, Any]]) -> None:
    expected = case.content.get("responses", [])
    if len(actual) < len(expected):
        raise MismatchError(f"{len(actual)} responses, expected {len(expected)}")
    for number, response in enumerate(expected):
        ((kind, wanted),) = response.items()
        got_kind, got = actual[number]
        if got_kind != kind:
            raise MismatchError(f"response {number} is of {got_kind}, expected {kind}")
        if kind == "admin":
            _check_members(got, wanted, f"response {number}")
        else:
            _check_rows(got, wanted, f"response {number}", is_proto=kind == "queryProto")


def _check_members(got: dict[str, Any], wanted: dict[str, Any], where: str) -> None:
    for name, value in wanted.items():
        name, _, operator = name.partition("|")
        found = got.get(name)
        if operator == "starts_with":
            if not str(found).startswith(str(value)):
                raise MismatchError(f"{where}: {name} is {found!r}, expected {value!r}…")
        elif isinstance(value, dict) and isinstance(found, dict):
            _check_members(found, value, f"{where}.{name}")
        elif not equal(found, value):
            raise MismatchError(f"{where}: {name} is {found!r}, expected {value!r}")


def _check_rows(got: list[Any], wanted: list[Any], where: str, *, is_proto: bool) -> None:
    if len(got) != len(wanted):
        raise MismatchError(f"{where}: {len(got)} rows {got}, expected {len(wanted)}: {wanted}")
    left = list(got)
    for spec in wanted:
        for row in left:
            try:
                if is_proto and "row" in spec:
                    if "protobufBytes" not in row.get("row", {}):
                        raise MismatchError("no Protobuf")
                else:
                    _check_members(row, spec, where)
                    _check_tombstone(row, spec)
            except MismatchError as error:
                problem = str(error)
                continue
            left.remove(row)
            break
        else:
            raise MismatchError(f"{problem}: expected {json.dumps(spec, default=str)}")


def _check_tombstone(row: dict[str, Any], spec: dict[str, Any]) -> None:
    if "row" in spec and spec["row"].get("tombstone") != row.get("row", {}).get("tombstone"):
        raise MismatchError("one is a tombstone")


def main() -> int:
    """0 if every chosen case passed."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m tests.ksql_cases.rest")
    parser.add_argument("directory", type=Path)
    parser.add_argument("files", nargs="*", help="names of files, without .json")
    parser.add_argument("-k", dest="text", default="", help="only cases whose title has this")
    parser.add_argument("-v", dest="verbose", action="count", default=0)
    arguments = parser.parse_args()
    functions = all_functions()
    passed: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    for case in load(arguments.directory):
        if (arguments.files and case.file not in arguments.files) or (
            arguments.text not in case.title
        ):
            continue
        try:
            asyncio.run(run(case, functions))
        except Exception as error:  # noqa: BLE001  # a case may fail in any way: it is counted
            failed[case.file] += 1
            if arguments.verbose:
                kind = type(error).__name__
                print(f"    {case.title}: {kind}: {str(error)[:400]}", flush=True)
            if arguments.verbose > 1:
                traceback.print_exception(error)
        else:
            passed[case.file] += 1
    for name in sorted(passed | failed):
        print(f"{name}: {passed[name]} of {passed[name] + failed[name]}")
    total = passed.total() + failed.total()
    percent = 100 * passed.total() / max(1, total)
    print(f"{passed.total()} of {total} cases passed ({percent:.1f} %)")
    return 0 if not failed else 1


if __name__ == "__main__":
    sys.exit(main())
