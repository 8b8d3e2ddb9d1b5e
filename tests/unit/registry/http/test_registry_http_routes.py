"""Every route of the registry, with its answers and refusals: a table.

Many of the cases are scenarios with which axonops' schema registry is compared with Confluent's
(`tests/bdd/features`), rewritten in the small format of `support.registry_format`.
"""

import pytest

from barnabas.registry.errors import RegistryError
from barnabas.registry.http.app import RegistryApp
from barnabas.registry.http.config import HttpConfig
from barnabas.registry.http.table import ROUTES, TABLE
from barnabas.registry.http.target import without_context
from barnabas.web.routing import segments
from support.registry_http import Reply, ask, run
from support.registry_other_cases import OTHER_CASES
from support.registry_service import MemoryService
from support.registry_steps import (
    REFERRING,
    RULES,
    TWO,
    A,
    Case,
    Step,
    add,
)
from support.registry_subject_cases import SUBJECT_CASES

CASES = [*SUBJECT_CASES, *OTHER_CASES]


def new_app() -> RegistryApp:
    config = HttpConfig(version="1.2", commit_id="c0ffee", deployment=("x",))
    return RegistryApp(MemoryService(), config)


def send(app: RegistryApp, step: Step) -> Reply:
    return run(ask(app, *step))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_route(case: Case) -> None:
    app = new_app()
    for step in case.before:
        reply = send(app, step)
        assert reply.status < 300, (step, reply.body)
    reply = send(app, case.request)
    assert reply.code == case.code, reply.body
    assert reply.status == (case.code if case.code < 1000 else case.code // 100)
    if case.body is not None:
        assert reply.json == case.body
    for name, value in case.has.items():
        assert reply.json.get(name) == value, (name, reply.json)
    assert (
        not set(case.lacks) & set(reply.json if isinstance(reply.json, dict) else ())
        if (case.lacks)
        else True
    )


def test_every_route_is_in_the_table_of_cases() -> None:
    called: dict[int, set[str]] = {}
    for case in CASES:
        for method, target, *_ in (*case.before, case.request):
            try:
                parts, _ = without_context(segments(target.partition("?")[0].encode()))
            except RegistryError:
                continue
            called.setdefault(id(ROUTES.find(parts)[0]), set()).add(method)
    for method, path, _ in TABLE:
        node, _ = ROUTES.find(segments(path.encode()))
        assert method in called.get(id(node), ()), f"{method} {path}"


def test_schemas_are_listed() -> None:
    app = new_app()
    for step in (
        *TWO,
        add("t", "a", ruleSet=RULES),
        add(":.c:u", "x"),
        ("PUT", "/config/alias", {"alias": "s"}),
        ("DELETE", "/subjects/s/versions/1"),
    ):
        assert send(app, step).status == 200

    def listed(query: str) -> list[tuple[str, int]]:
        reply = send(app, ("GET", f"/schemas{query}"))
        assert reply.status == 200
        assert all("schema" in one and "id" in one for one in reply.json)
        return [(one["subject"], one["version"]) for one in reply.json]

    table = {
        "": [("s", 2), ("t", 1)],
        "?deleted=true": [("s", 1), ("s", 2), ("t", 1)],
        "?deleted=true&latestOnly=true": [("s", 2), ("t", 1)],
        "?subjectPrefix=s": [("s", 2)],
        "?subjectPrefix=:*:": [(":.c:u", 1), ("s", 2), ("t", 1)],
        "?subjectPrefix=:.c:": [(":.c:u", 1)],
        "?ruleType=CEL": [("t", 1)],
        "?ruleType=OTHER": [],
        "?offset=1&limit=5": [("t", 1)],
        "?limit=1": [("s", 2)],
        "?subjectPrefix=al": [],
        "?subjectPrefix=al&aliases=true": [("s", 2)],
        "?lifecycle=STRONG": [],
        "?lifecycle=STRONG&lifecycle=NONE": [("s", 2), ("t", 1)],
        "?resourceType=topic": [],
    }
    assert {query: listed(query) for query in table} == table
    found = send(app, ("GET", "/schemas?subjectPrefix=al&aliases=true")).json
    assert [one["aliases"] for one in found] == [["alias"]]


def test_a_guid_names_the_content_of_a_schema() -> None:
    app = new_app()
    first = send(app, add("s", "a")).json
    again = send(app, add(":.c:s", "a")).json
    assert first["guid"] == again["guid"]
    found = send(app, ("GET", f"/schemas/guids/{first['guid']}")).json
    assert found == {
        "guid": first["guid"],
        "schemaType": "AVRO",
        "schema": A,
        "deleted": False,
    }
    ids = send(app, ("GET", f"/schemas/guids/{first['guid']}/ids")).json
    assert ids == [{"context": ".", "id": 1}, {"context": ".c", "id": 1}]


def test_fields_come_in_confluent_s_order() -> None:
    app = new_app()
    everything = REFERRING | {
        "metadata": {"properties": {"k": "v"}},
        "ruleSet": RULES,
    }
    send(app, add("base", "a"))
    made = send(app, ("POST", "/subjects/s/versions", everything))
    assert list(made.json) == [
        "id", "version", "guid", "schemaType", "references", "metadata", "ruleSet", "schema",
    ]  # fmt: skip
    assert list(send(app, ("GET", "/subjects/s/versions/1")).json) == [
        "subject", "version", "id", "guid", "schemaType", "references", "metadata", "ruleSet",
        "schema", "deleted",
    ]  # fmt: skip
    assert list(send(app, ("GET", "/schemas/ids/2?fetchMaxId=true")).json) == [
        "subject", "version", "guid", "schemaType", "schema", "references", "metadata", "ruleSet",
        "maxId", "deleted",
    ]  # fmt: skip


def test_an_answer_that_is_kept_changes_with_its_schema() -> None:
    app = new_app()
    for step in TWO:
        send(app, step)
    reads = ("/subjects/s/versions/1", "/schemas/ids/1")
    for target in reads:
        first, second = send(app, ("GET", target)), send(app, ("GET", target))
        assert first.body == second.body
        assert first.json["deleted"] is False
    send(app, ("DELETE", "/subjects/s/versions/1"))
    assert send(app, ("GET", reads[0])).code == 40402
    assert send(app, ("GET", reads[1])).json["deleted"] is True
    send(app, ("DELETE", "/subjects/s/versions/1?permanent=true"))
    assert send(app, ("GET", reads[1])).code == 40403
