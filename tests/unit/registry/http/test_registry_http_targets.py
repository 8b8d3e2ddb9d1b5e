"""Paths and queries: what a subject's name may hold, contexts in the path, aliases."""

from urllib.parse import quote

import pytest

from barnabas.registry.errors import RegistryError
from barnabas.registry.http.app import RegistryApp
from barnabas.registry.http.target import (
    PARAMETERS_MAX,
    Query,
    decoded,
    without_context,
)
from barnabas.web.routing import segments
from support.registry_format import text
from support.registry_http import Reply, ask, run
from support.registry_service import MemoryService

NAMES = [
    "com.example.Topic-value",
    "my_topic_value",
    "my-topic-value",
    "a/b",
    "/",
    "a//b/",
    "../../etc/passwd",
    "..",
    ".",
    "...",
    "a:b:c",
    ":",
    "::",
    "a b",
    "a+b",
    "100%",
    "%2F",
    "a?b=c&d#e",
    "a;v=1",
    "größe-値-😀",
    "versions",
    "subjects",
    "latest",
    "contexts",
    "{subject}",
    "a\\b",
    "'\"<script>",
    "x" * 2000,
    "null",
    "0",
]


@pytest.fixture
def app() -> RegistryApp:
    return RegistryApp(MemoryService())


def get(app: RegistryApp, target: str | bytes) -> Reply:
    return run(ask(app, "GET", target))


def add(app: RegistryApp, path: str, *fields: str) -> Reply:
    return run(ask(app, "POST", f"{path}/versions", {"schema": text(*fields)}))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("context", ["", ":.c:"])
def test_a_subject_may_have_any_name(app: RegistryApp, name: str, context: str) -> None:
    path = f"/subjects/{quote(context + name, safe='')}"
    assert add(app, path, "a").status == 200
    assert get(app, f"{path}/versions").json == [1]
    assert get(app, f"{path}/versions/latest").json["subject"] == context + name
    assert get(app, "/subjects").json == [context + name]
    found = get(app, f"/schemas/ids/1?subject={quote(context + name, safe='')}")
    assert found.json["subject"] == context + name
    config = run(ask(app, "PUT", path.replace("subjects", "config"), {"compatibility": "NONE"}))
    assert config.status == 200
    assert run(ask(app, "DELETE", path)).json == [1]
    assert get(app, "/subjects").json == []


PATHS: list[tuple[bytes, int]] = [
    (b"/subjects/a%2Fb/versions", 200),
    (b"/subjects/a%2fb/versions", 200),
    (b"/subjects/a%252Fb/versions", 40401),
    (b"/subjects/a/b/versions", 404),
    (b"/subjects/%2E%2E/config/versions", 404),
    (b"/subjects/../config", 404),
    (b"/subjects/..%2F..%2Fconfig/versions", 40401),
    (b"//subjects//a%2Fb//versions/", 200),
    (b"/subjects//versions", 405),
    (b"/subjects/a%2Fb/versions/", 200),
    (b"/subjects/", 200),
    (b"/subjects/%zz/versions", 400),
    (b"/subjects/%/versions", 400),
    (b"/subjects/%E9/versions", 400),
    (b"/subjects/\xc3\xa9/versions", 40401),
    (b"/subjects/\xe9/versions", 400),
    (b"/subjects/%00/versions", 40401),
    (b"/subjects%2Fa/versions", 404),
    (b"/SUBJECTS", 404),
    (b"/schemas/ids/%31", 200),
    (b"/schemas/ids/+1", 200),
    (b"/schemas/ids/ 1", 404),
    (b"/schemas/ids/%D9%A1", 404),
    (b"/schemas/ids/1_0", 404),
    (b"", 200),
    (b"*", 404),
]


@pytest.mark.parametrize(("path", "code"), PATHS)
def test_paths_are_cut_first_and_decoded_once(app: RegistryApp, path: bytes, code: int) -> None:
    add(app, "/subjects/a%2Fb", "a")
    assert get(app, path).code == code


CONTEXTS: list[tuple[str, str, list[str]]] = [
    ("/contexts/.c/subjects/s", ".c", ["subjects", "s"]),
    ("/contexts/c/subjects/s", ".c", ["subjects", "s"]),
    ("/contexts/:.c:/subjects/s", ".c", ["subjects", "s"]),
    ("/contexts/%3A.c%3A/subjects/s", ".c", ["subjects", "s"]),
    ("/contexts/./subjects", ".", ["subjects"]),
    ("/contexts/.c/config", ".c", ["config", ":.c:"]),
    ("/contexts/.c/mode/", ".c", ["mode", ":.c:"]),
    ("/contexts/./config", ".", ["config"]),
    ("/contexts/.c/config/s", ".c", ["config", "s"]),
    ("/contexts/.c", ".c", ["contexts", ":.c:"]),
    ("/contexts/.", ".", []),
    ("/contexts/.c/contexts", ".c", ["contexts"]),
    ("/contexts/.c/contexts/.d/subjects", ".d", ["subjects"]),
]


@pytest.mark.parametrize(("path", "context", "rest"), CONTEXTS)
def test_a_path_may_begin_with_a_context(path: str, context: str, rest: list[str]) -> None:
    parts, found = without_context(segments(path.encode()))
    assert (found, [decoded(part) for part in parts]) == (context, rest)


def test_a_path_without_a_context() -> None:
    assert without_context([b"contexts"]) == ([b"contexts"], None)
    assert without_context([b"subjects", b"contexts"]) == ([b"subjects", b"contexts"], None)
    with pytest.raises(RegistryError, match="colon"):
        without_context([b"contexts", b"a:b", b"subjects"])


def test_all_that_is_below_a_context_is_in_it(app: RegistryApp) -> None:
    add(app, "/subjects/s", "default")
    here = "/contexts/.c"
    assert add(app, f"{here}/subjects/s", "a").json["id"] == 1
    assert add(app, f"{here}/subjects/s", "a", "b").json["id"] == 2
    assert get(app, f"{here}/subjects/s/versions").json == [1, 2]
    assert get(app, f"{here}/subjects/s/versions/latest").json["subject"] == ":.c:s"
    assert get(app, f"{here}/subjects").json == [":.c:s"]
    assert get(app, f"{here}/subjects?subjectPrefix=t").json == []
    assert get(app, "/contexts/./subjects").json == ["s"]
    assert get(app, f"{here}/schemas/ids/1/schema").json == {"fields": ["a"]}
    assert get(app, f"{here}/schemas/ids/1?subject=s").json["subject"] == ":.c:s"
    assert get(app, "/schemas/ids/1/schema").json == {"fields": ["default"]}
    assert get(app, f"{here}/schemas/ids/1/subjects").json == [":.c:s"]
    assert get(app, f"{here}/schemas/ids/2/versions").json == [{"subject": ":.c:s", "version": 2}]
    assert [one["id"] for one in get(app, f"{here}/schemas").json] == [1, 2]
    assert get(app, f"{here}/schemas/types").status == 200
    assert get(app, f"{here}/contexts").json == [".", ".c"]
    check = run(
        ask(app, "POST", f"{here}/compatibility/subjects/s/versions", {"schema": text("x!")})
    )
    assert check.json == {"is_compatible": False}
    found = run(ask(app, "POST", f"{here}/subjects/s", {"schema": text("a")}))
    assert found.json["subject"] == ":.c:s"
    assert run(ask(app, "PUT", f"{here}/config", {"compatibility": "NONE"})).status == 200
    assert get(app, "/config/:.c:").json["compatibilityLevel"] == "NONE"
    assert get(app, "/config").json["compatibilityLevel"] == "BACKWARD"
    assert get(app, f"{here}/config/s").code == 40408
    assert run(ask(app, "PUT", f"{here}/mode/s", {"mode": "READONLY"})).status == 200
    assert get(app, "/mode/:.c:s").json == {"mode": "READONLY"}
    assert run(ask(app, "DELETE", f"{here}/mode/s")).status == 200
    assert run(ask(app, "DELETE", f"{here}/subjects/s")).json == [1, 2]
    assert run(ask(app, "DELETE", f"{here}/subjects/s?permanent=true")).json == [1, 2]
    assert run(ask(app, "DELETE", here)).status == 204
    assert get(app, "/contexts").json == ["."]
    assert get(app, "/subjects").json == ["s"]


def test_a_subject_that_says_its_context_keeps_it(app: RegistryApp) -> None:
    add(app, "/contexts/.c/subjects/:.d:s", "a")
    assert get(app, "/subjects").json == [":.d:s"]
    assert get(app, "/contexts/.c/schemas/ids/1?subject=:.d:s").json["subject"] == ":.d:s"


def test_the_default_context_has_two_spellings(app: RegistryApp) -> None:
    add(app, "/subjects/:.:s", "a")
    assert get(app, "/subjects").json == ["s"]
    assert get(app, "/subjects/s/versions").json == [1]
    run(ask(app, "PUT", "/config/:.:", {"compatibility": "FULL"}))
    assert get(app, "/config").json == {"compatibilityLevel": "FULL"}


def test_an_alias_stands_for_its_subject(app: RegistryApp) -> None:
    add(app, "/subjects/s", "a")
    run(ask(app, "PUT", "/config/short", {"alias": "s"}))
    assert get(app, "/subjects/short/versions").json == [1]
    assert get(app, "/subjects/short/versions/latest").json["subject"] == "s"
    assert get(app, "/schemas/ids/1?subject=short").json["subject"] == "s"
    assert add(app, "/subjects/short", "a", "b").json["version"] == 2
    assert get(app, "/subjects").json == ["s"]
    assert get(app, "/config/short").json["alias"] == "s"
    assert get(app, "/config/s").code == 40408
    assert run(ask(app, "DELETE", "/subjects/short")).json == [1, 2]


def test_queries() -> None:
    query = Query(b"a=1&a=2&flag=TRUE&other=1&n=%2B5&s=%C3%A9+x&bad=%zz&empty")
    assert query.text("a") == "1"
    assert query.texts("a") == ["1", "2"]
    assert query.flag("flag")
    assert not query.flag("other")
    assert not query.flag("empty")
    assert not query.flag("none")
    assert query.number("n", 0) == 5
    assert query.number("none", 7) == 7
    assert query.number("empty", 7) == 7
    assert query.text("s") == "é x"
    assert query.text("bad") == "%zz"
    assert query.text("none", "x") == "x"
    assert not Query(b"")
    with pytest.raises(RegistryError, match="parameters"):
        Query(b"&".join(b"a=1" for _ in range(PARAMETERS_MAX + 1)))


def test_an_empty_subject_is_a_subject(app: RegistryApp) -> None:
    assert add(app, "/subjects/:.:", "a").status == 200
    assert get(app, "/subjects/:.:/versions/1").json["subject"] == ""
