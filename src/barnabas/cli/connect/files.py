"""Files that describe connectors: properties, JSON, and YAML where a library for it is installed.

One file describes one connector, as connect-standalone takes it. `name` may be left out: the
file's name is the connector's then.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from barnabas.cli.errors import CliError, ExitCode
from barnabas.cli.node_options import read_properties

SUFFIXES = (".properties", ".json", ".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class Wanted:
    """A connector as a file describes it. `state` is RUNNING, PAUSED, STOPPED or None."""

    name: str
    config: dict[str, str] = field(repr=False)
    state: str | None = None
    path: str = ""


def read_file(path: str) -> Wanted:
    """Return the connector of a file. Raises CliError."""
    own_name, suffix = os.path.splitext(os.path.basename(path))
    if suffix in (".yaml", ".yml"):
        return _of_value(path, own_name, _read_yaml(path))
    text = _read(path)
    if suffix == ".json" or text.lstrip().startswith("{"):
        try:
            return _of_value(path, own_name, json.loads(text))
        except ValueError as error:
            raise CliError(f"{path}: {error}", ExitCode.USAGE) from error
    return _of_value(path, own_name, read_properties(path))


def read_folder(path: str) -> list[Wanted]:
    """Return the connectors of a folder's files, or of one file. Raises CliError."""
    if os.path.isfile(path):
        return [read_file(path)]
    if not os.path.isdir(path):
        raise CliError(f"{path}: there is no such folder", ExitCode.NOT_FOUND)
    names = sorted(name for name in os.listdir(path) if name.endswith(SUFFIXES))
    if not names:
        # With --prune an empty folder would delete all that there is.
        text = f"{path}: there is no file of a connector in it ({', '.join(SUFFIXES)})"
        raise CliError(text, ExitCode.NOT_FOUND)
    by_name: dict[str, Wanted] = {}
    for name in names:
        one = read_file(os.path.join(path, name))
        if one.name in by_name:
            raise CliError(
                f"{one.path} and {by_name[one.name].path} both describe {one.name}", ExitCode.USAGE
            )
        by_name[one.name] = one
    return list(by_name.values())


def _of_value(path: str, own_name: str, value: Any) -> Wanted:
    if not isinstance(value, Mapping):
        raise CliError(f"{path}: it describes no connector", ExitCode.USAGE)
    state = None
    if isinstance(value.get("config"), Mapping):
        state = value.get("initial_state")
        config, name = dict(value["config"]), value.get("name")
    else:
        config, name = dict(value), value.get("name")
    name = str(name or config.get("name") or own_name)
    texts = {str(key): _text(path, key, one) for key, one in config.items() if one is not None}
    if "connector.class" not in texts:
        raise CliError(f"{path}: connector.class is missing", ExitCode.USAGE)
    if texts.setdefault("name", name) != name:
        raise CliError(f"{path}: the config's name is not {name}", ExitCode.USAGE)
    if state is not None and str(state).upper() not in ("RUNNING", "PAUSED", "STOPPED"):
        text = f"{path}: initial_state is RUNNING, PAUSED or STOPPED"
        raise CliError(text, ExitCode.USAGE)
    return Wanted(name, texts, None if state is None else str(state).upper(), path)


def _text(path: str, key: Any, value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping | list):
        raise CliError(f"{path}: the value of {key} is not a text", ExitCode.USAGE)
    return json.dumps(value)


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError as error:
        raise CliError(f"{path}: {error.strerror}", ExitCode.NOT_FOUND) from error
    except (OSError, UnicodeDecodeError) as error:
        raise CliError(f"{path}: {error}") from error


def _read_yaml(path: str) -> Any:
    try:
        yaml = import_module("yaml")
    except ModuleNotFoundError as error:
        text = f"{path}: YAML needs the package PyYAML, which is not installed"
        raise CliError(text, ExitCode.USAGE, "write JSON or properties") from error
    try:
        return yaml.safe_load(_read(path))
    except yaml.YAMLError as error:
        raise CliError(f"{path}: {error}", ExitCode.USAGE) from error
