"""Examples in the guides to mirroring and HTTP are configurations that connectors take."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from barnabas.connect.tasks.local import connector_of

DOCS = Path(__file__).parents[4] / "docs" / "connect"
EXAMPLES = [
    (page, json.loads(text))
    for page in ("mirror.md", "http.md")
    for text in re.findall(r"```json\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)
]


@pytest.mark.parametrize(("page", "settings"), EXAMPLES)
def test_examples(page: str, settings: dict[str, str]) -> None:
    connector = connector_of(settings)
    found = connector.definition.validate(settings)
    assert not {name: one.errors for name, one in found.items() if one.errors}
    assert not connector.validate(settings)
    common = ("name", "connector.class", "topics", "tasks.max", "errors.", "transforms")
    others = ("key.converter", "value.converter", "header.converter", "source.", "target.")
    unknown = {
        name
        for name in settings
        if name not in connector.definition.settings and not name.startswith((*common, *others))
    }
    assert not unknown
