"""Secrets are taken out of texts, however these spell them."""

from __future__ import annotations

import json
import logging
from io import StringIO
from pathlib import Path
from urllib.parse import quote, quote_plus, urlencode

import pytest

from barnabas.connect.config.providers import ConfigProviders, Hiding
from barnabas.connect.worker.secrets import Secrets

SECRET = "a b/c'd\"e\\f\ng+ü%&"


@pytest.mark.parametrize(
    "spelled",
    [
        SECRET,
        repr(SECRET),
        str(KeyError(SECRET)),
        json.dumps(SECRET),
        json.dumps(SECRET, ensure_ascii=False),
        quote(SECRET),
        quote(SECRET, safe=""),
        quote_plus(SECRET),
        urlencode({"q": SECRET}),
    ],
)
def test_a_secret_is_hidden_however_it_is_spelled(spelled: str) -> None:
    found = Hiding([SECRET, "a"])(f"<{spelled}>")
    assert "[hidden]" in found
    assert "d" not in found.replace("[hidden]", "")


def test_short_values_stay() -> None:
    assert Hiding(["abc", "abcd"])("abc abcd") == "abc [hidden]"


def test_logs_have_no_secrets_while_they_are_guarded(tmp_path: Path) -> None:
    (tmp_path / "s.properties").write_text("k=hush-hush\n")
    provider = "org.apache.kafka.common.config.provider.FileConfigProvider"
    settings = {"config.providers": "f", "config.providers.f.class": provider}
    secrets = Secrets(ConfigProviders.of_worker(settings))
    written = StringIO()
    handler = logging.StreamHandler(written)
    logger = logging.getLogger("barnabas")
    logger.addHandler(handler)
    try:
        secrets.guard_logs()
        assert secrets({"a": f"${{f:{tmp_path}/s.properties:k}}"}) == {"a": "hush-hush"}
        try:
            raise ValueError("hush-hush")
        except ValueError:
            logging.getLogger("barnabas.some").exception("no %s", "hush-hush")
        guarded = written.getvalue()
        secrets.leave_logs()
        logging.getLogger("barnabas.some").error("hush-hush")
    finally:
        logger.removeHandler(handler)
    assert guarded.startswith("no [hidden]\nTraceback")
    assert guarded.endswith("ValueError: [hidden]\n")
    assert written.getvalue() == f"{guarded}hush-hush\n"
