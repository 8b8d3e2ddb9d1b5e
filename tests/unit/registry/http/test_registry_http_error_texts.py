"""Codes and messages of errors that clients compare or search."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.registry.http.app import RegistryApp
from support.registry_format import text
from support.registry_http import ask, run
from support.registry_service import MemoryService

Step = tuple[str, str, Any]
ADD: Step = ("POST", "/subjects/s/versions", {"schema": text("a")})
MORE: Step = ("POST", "/subjects/s/versions", {"schema": text("a", "b")})
DELETE: Step = ("DELETE", "/subjects/s", None)
DELETE_VERSION: Step = ("DELETE", "/subjects/s/versions/1", None)
ASSOCIATIONS = "/associations/resources"
PERMANENTLY = "?permanent=true"


@pytest.mark.parametrize(
    ("before", "step", "code", "message"),
    [
        ([], ("GET", "/subjects/s/versions", None), 40401, "Subject 's' not found."),
        ([], ("GET", "/subjects/s/versions/1", None), 40401, "Subject 's' not found."),
        ([], ("GET", "/subjects/:.c:s/versions", None), 40401, "Subject ':.c:s' not found."),
        ([], DELETE, 40401, "Subject 's' not found."),
        ([], ("DELETE", "/config/s", None), 40401, "Subject 's' not found."),
        ([], ("DELETE", "/mode/s", None), 40401, "Subject 's' not found."),
        ([ADD], ("GET", "/subjects/s/versions/7", None), 40402, "Version 7 not found."),
        ([], ("GET", "/schemas/ids/7", None), 40403, "Schema 7 not found"),
        ([ADD], ("POST", "/subjects/s", {"schema": text("z")}), 40403, "Schema not found"),
        (
            [ADD, DELETE],
            DELETE,
            40404,
            "Subject 's' was soft deleted. Set permanent=true to delete permanently",
        ),
        (
            [ADD],
            ("DELETE", f"/subjects/s{PERMANENTLY}", None),
            40405,
            "Subject 's' was not deleted first before being permanently deleted",
        ),
        (
            [ADD, MORE, DELETE_VERSION],
            DELETE_VERSION,
            40406,
            "Subject 's' Version 1 was soft deleted. Set permanent=true to delete permanently",
        ),
        (
            [ADD],
            ("DELETE", f"/subjects/s/versions/1{PERMANENTLY}", None),
            40407,
            "Subject 's' Version 1 was not deleted first before being permanently deleted",
        ),
        (
            [],
            ("GET", "/config/s", None),
            40408,
            "Subject 's' does not have subject-level compatibility configured",
        ),
        (
            [],
            ("GET", "/mode/s", None),
            40409,
            "Subject 's' does not have subject-level mode configured",
        ),
        (
            [],
            ("DELETE", "/associations/resources/r", None),
            40410,
            "Association for 'r' not found.",
        ),
        (
            [ADD],
            ("POST", "/subjects/s/versions", {"schema": text("a", "b!")}),
            409,
            'Schema being registered is incompatible with an earlier schema for subject "s"',
        ),
    ],
)
def test_codes_and_words_of_errors(before: list[Step], step: Step, code: int, message: str) -> None:
    app = RegistryApp(MemoryService())
    for earlier in before:
        assert run(ask(app, *earlier)).status == 200
    reply = run(ask(app, *step))
    assert (reply.status, reply.code) == (int(str(code)[:3]), code)
    assert reply.json["message"].partition(", details: ")[0] == message
