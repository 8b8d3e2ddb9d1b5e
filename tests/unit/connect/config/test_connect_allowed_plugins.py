"""A request never decides what is imported: only the worker's own settings and packages do."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from barnabas.connect import allowed_plugins
from barnabas.connect.config.answers import errors_of
from barnabas.connect.config.plugin_classes import listed
from barnabas.connect.config.validation import WorkerRules, plugin_settings, validate_connector
from barnabas.connect.connectors.datagen.connector import Datagen
from barnabas.connect.connectors.mirror import settings as mirror
from barnabas.connect.connectors.mirror.flow import Flow
from barnabas.connect.connectors.postgres.settings import PostgresSettings
from barnabas.connect.connectors.spark.source import data_source
from barnabas.connect.errors.requests import BadRequestError, NotFoundError
from barnabas.connect.plugins import load
from barnabas.connect.tasks.chain import make_chain
from barnabas.connect.tasks.local import connector_of
from barnabas.connect.worker.settings import check_settings
from barnabas.schemas.data.errors import ConfigError

BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
WORKER = {
    "key.converter": BYTES,
    "value.converter": BYTES,
    "offset.storage.file.filename": "offsets",
}
FILE_SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
TRANSFORM = """
from barnabas.connect.transforms.base import Transform

class Own(Transform):
    def apply(self, record):
        return record
"""
MIRROR = {
    "name": "m",
    "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
    "source.cluster.alias": "a",
    "target.cluster.alias": "b",
    "source.cluster.bootstrap.servers": "127.0.0.1:1",
    "target.cluster.bootstrap.servers": "127.0.0.1:1",
}


@pytest.fixture(autouse=True)
def nothing_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allowed_plugins, "_names", set())


@pytest.fixture
def ending(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module that ends the process which imports it."""
    (tmp_path / "ending_module.py").write_text("raise SystemExit(1)\n")
    monkeypatch.syspath_prepend(tmp_path)
    return "ending_module"


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "own_plugins.py").write_text(TRANSFORM)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own_plugins", raising=False)
    return "own_plugins"


@pytest.mark.parametrize("form", ["{}:x", "{}.x"])
def test_no_name_in_a_request_imports_a_module(ending: str, form: str) -> None:
    name = form.format(ending)
    with pytest.raises(NotFoundError, match="Unknown plugin"):
        plugin_settings(name)
    with pytest.raises(BadRequestError, match="Failed to find any class"):
        validate_connector({"name": "c", "connector.class": name}, WorkerRules())
    with pytest.raises(ConfigError, match="Failed to find any class"):
        connector_of({"connector.class": name})
    for kind in ("key.converter", "value.converter", "header.converter"):
        with pytest.raises(ConfigError, match="Failed to find any class"):
            make_chain({kind: name}, WORKER)
    transform = {"transforms": "t", "transforms.t.type": name}
    with pytest.raises(ConfigError, match="Failed to find any class"):
        make_chain(transform, WORKER)
    with pytest.raises(ConfigError, match="Failed to find any class"):
        data_source({"format": name})
    assert ending not in sys.modules


@pytest.mark.parametrize(
    ("setting", "name"),
    [
        ("key.converter", "ending_module:x"),
        ("header.converter", "ending_module:x"),
        ("transforms.t.type", "ending_module:x"),
        ("predicates.p.type", "ending_module:x"),
        ("replication.policy.class", "os:abort"),
        ("topic.filter.class", "os:abort"),
    ],
)
def test_validation_names_the_setting_and_imports_nothing(
    ending: str, setting: str, name: str
) -> None:
    given = {**MIRROR, "transforms": "t", "predicates": "p", setting: name}
    answer = validate_connector(given, WorkerRules())
    (found,) = [one for one in answer["configs"] if one["value"]["name"] == setting]
    assert any("barnabas.connect.plugins" in text for text in found["value"]["errors"])
    assert ending not in sys.modules


@pytest.mark.parametrize("name", ["os:abort", BYTES, "own_plugins:Own"])
def test_a_policy_is_checked_before_it_is_called(own: str, name: str) -> None:
    allowed_plugins.allow(["os", own])
    given = {**MIRROR, "replication.policy.class": name}
    with pytest.raises(ConfigError, match=r"replication\.policy\.class|is not a class"):
        Flow.read(given, mirror.SOURCE).policy()


def test_a_module_that_ends_the_process_is_an_error(ending: str) -> None:
    allowed_plugins.allow([ending])
    with pytest.raises(ConfigError, match="ends the process"):
        load(f"{ending}:x")


@pytest.mark.parametrize("entry", ["own_plugins", "own_plugins:Own"])
def test_the_workers_settings_allow_classes_and_modules(own: str, entry: str) -> None:
    step = {"transforms": "t", "transforms.t.type": "own_plugins:Own"}
    with pytest.raises(ConfigError, match=r"name it in barnabas\.connect\.plugins"):
        make_chain(step, WORKER)
    check_settings({**WORKER, "barnabas.connect.plugins": entry})
    assert len(make_chain(step, WORKER).stages) == 1
    assert ("own_plugins:Own" in listed("transformation")) == (":" in entry)


def test_executors_take_them_from_the_workers_settings(own: str) -> None:
    step = {"transforms": "t", "transforms.t.type": "own_plugins:Own"}
    assert make_chain(step, {**WORKER, "barnabas.connect.plugins": own}).stages


@pytest.mark.parametrize("entry", ["no.such.module", "own_plugins:Missing", "NoSuchSource"])
def test_a_wrong_entry_is_an_error_at_the_start(own: str, entry: str) -> None:
    with pytest.raises(ConfigError, match=f"^Invalid value {entry} for .*connect.plugins"):
        check_settings({**WORKER, "barnabas.connect.plugins": entry})


def test_a_file_of_signals_is_emptied_only_where_the_worker_allows_it(tmp_path: Path) -> None:
    given = {
        "topic.prefix": "p",
        "database.hostname": "127.0.0.1",
        "database.user": "u",
        "database.dbname": "d",
        "signal.enabled.channels": "file",
        "signal.file": str(tmp_path / "any"),
    }
    with pytest.raises(ConfigError, match=r"FileSignalChannel is disabled on this worker"):
        PostgresSettings.parse(given)
    check_settings({**WORKER, "barnabas.connect.plugins": "FileSignalChannel"})
    PostgresSettings.parse(given)


@pytest.mark.parametrize("path", ["/dev/zero", "/"])
def test_a_schema_is_a_file_of_a_bounded_size(path: str, tmp_path: Path) -> None:
    (text,) = Datagen().validate({"kafka.topic": "t", "schema.filename": path})["schema.filename"]
    assert "is not a file" in text
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(2_000_000)
    given = {"kafka.topic": "t", "schema.filename": str(large)}
    (text,) = Datagen().validate(given)["schema.filename"]
    assert "more than" in text


@pytest.mark.parametrize(
    "setting",
    [
        {"barnabas.connect.plugins": "FileStreamSource"},
        {"barnabas.connect.plugins": FILE_SOURCE},
        {"plugin.path": "libs/connect-file-4.3.0.jar"},
    ],
)
def test_file_connectors_are_off_until_the_worker_turns_them_on(setting: dict[str, str]) -> None:
    given = {"name": "f", "connector.class": "FileStreamSource", "topic": "t", "file": "/x"}
    with pytest.raises(BadRequestError, match=r"disabled on this .*barnabas\.connect\.plugins"):
        validate_connector(given, WorkerRules())
    assert FILE_SOURCE not in listed("source")
    with pytest.raises(ConfigError, match="disabled on this worker"):
        connector_of(given)
    check_settings({**WORKER, **setting})
    assert errors_of(validate_connector(given, WorkerRules())) == []
    assert FILE_SOURCE in listed("source")
