"""CREATE, DROP, SHOW and DESCRIBE of connectors, through a Connect worker's REST interface.

Source: ksqlDB's ConnectExecutor, DropConnectorExecutor, ListConnectorsExecutor,
ListConnectorPluginsExecutor and DescribeConnectorExecutor.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from barnabas.sql.server.connectors.client import (
    Answer,
    ConnectClient,
    ConnectClients,
    ConnectUnavailableError,
    Headers,
)
from barnabas.sql.server.entities import Entity, entity
from barnabas.sql.server.errors import BAD_STATEMENT, SERVER_ERROR, ApiError
from barnabas.sql.syntax import tree
from barnabas.sql.syntax.masking import masked, masked_settings
from barnabas.sql.syntax.tree import Described, Listed, ParsedStatement

_log = logging.getLogger(__name__)
_CLASS: Final = "connector.class"
_CONFLICT: Final = 409
_NOT_FOUND: Final = 404
_RUNNING: Final = "RUNNING"
_KINDS: Final = {Listed.SOURCE_CONNECTORS: "source", Listed.SINK_CONNECTORS: "sink"}
_LISTED: Final = (*_KINDS, Listed.CONNECTORS, Listed.CONNECTOR_PLUGINS)
_JDBC_SOURCE: Final = "io.confluent.connect.jdbc.JdbcSourceConnector"
_TRANSFORMS: Final = "org.apache.kafka.connect.transforms."
SourcesOf = Callable[[Sequence[str]], list[Entity]]
"""The streams and tables over topics, described."""


def is_about_connectors(statement: object) -> bool:
    """Return whether a Connect worker answers the statement."""
    return (
        isinstance(statement, (tree.CreateConnector, tree.DropConnector))
        or (isinstance(statement, tree.Show) and statement.listed in _LISTED)
        or (isinstance(statement, tree.Describe) and statement.described is Described.CONNECTOR)
    )


class ConnectorStatements:
    """Answers statements about connectors."""

    def __init__(self, clients: ConnectClients, sources_of: SourcesOf) -> None:
        self._clients = clients
        self._sources_of = sources_of

    def check(self, parsed: ParsedStatement, headers: Headers) -> None:
        """Try CREATE CONNECTOR before any statement of its request is done. Raises ApiError."""
        statement = parsed.statement
        if not isinstance(statement, tree.CreateConnector):
            return
        text = masked(parsed.text)
        try:
            with self._clients.client(headers) as client:
                if not statement.if_not_exists and _exists(client, statement.name, text):
                    raise _error(_CONFLICT, f"Connector {statement.name} already exists")
                errors = _config_errors(client, _config(statement))
        except ConnectUnavailableError as error:
            raise ApiError(SERVER_ERROR, str(error), statement=text) from error
        if errors:
            message = "Validation error: " + "\n".join(errors)
            raise ApiError(BAD_STATEMENT, message, statement=text)

    def answer(self, parsed: ParsedStatement, headers: Headers) -> Entity:
        """The answer to a statement. Raises ApiError."""
        statement, text = parsed.statement, masked(parsed.text)
        try:
            with self._clients.client(headers) as client:
                match statement:
                    case tree.CreateConnector():
                        return _create(client, statement, text)
                    case tree.DropConnector():
                        return _drop(client, statement, text)
                    case tree.Describe(_, name):
                        return self._describe(client, name or "", text)
                    case tree.Show(Listed.CONNECTOR_PLUGINS):
                        return _plugins(client, text)
                    case tree.Show(listed):
                        return _connectors(client, _KINDS.get(listed), text)
        except ConnectUnavailableError as error:
            raise ApiError(SERVER_ERROR, str(error), statement=text) from error
        raise AssertionError(f"not about connectors: {type(statement).__name__}")

    def _describe(self, client: ConnectClient, name: str, text: str) -> Entity:
        status = _data(client.status(name), "Failed to query connector status: ")
        info = _data(client.describe(name), "Failed to describe connector: ")
        topics_answer = client.topics(name)
        topics: list[str] = []
        warnings: list[Entity] = []
        if topics_answer.error is None:
            topics = list((topics_answer.data.get(name) or {}).get("topics") or ())
        elif topics_answer.status == _NOT_FOUND:  # workers before Kafka 2.5
            _log.warning(
                "the topics of connector %s cannot be listed: %s", name, topics_answer.error
            )
        else:
            message = f"Could not list related topics due to error: {topics_answer.error}"
            warnings = [{"message": message}]
        return {
            **entity(
                "connector_description",
                text,
                connectorClass=(info.get("config") or {}).get(_CLASS),
                status=_status(status),
                sources=self._sources_of(topics),
                topics=topics,
            ),
            "warnings": warnings,
        }


def _create(client: ConnectClient, statement: tree.CreateConnector, text: str) -> Entity:
    name = statement.name
    if statement.if_not_exists and _exists(client, name, text):
        return entity("warning_entity", text, message=f"Connector {name} already exists")
    made = _data(client.create(name, _config(statement)), "Failed to create connector: ")
    return entity("connector_info", text, info=made)


def _drop(client: ConnectClient, statement: tree.DropConnector, text: str) -> Entity:
    name = statement.name
    answer = client.delete(name)
    if answer.error is not None and statement.if_exists and answer.status == _NOT_FOUND:
        return entity("warning_entity", text, message=f"Connector '{name}' does not exist.")
    _data(answer, "Failed to drop connector: ")
    return entity("drop_connector", text, connectorName=name)


def _plugins(client: ConnectClient, text: str) -> Entity:
    plugins = _data(client.plugins(), "Failed to list connector plugins: ")
    shown = [
        {"className": one.get("class") or one.get("className")}
        | {name: one[name] for name in ("type", "version") if one.get(name) is not None}
        for one in plugins
    ]
    return entity("connector_plugins_list", text, connectorsPlugins=shown)


def _connectors(client: ConnectClient, kind: str | None, text: str) -> Entity:
    shown: list[Entity] = []
    warnings: list[Entity] = []
    for name in _data(client.connectors(), "Failed to list connectors: "):
        description = client.describe(name)
        if description.error is not None:
            if kind is None:
                shown.append({"name": name, "type": "unknown"})
            message = f"Could not describe connector {name}: {description.error}"
            warnings.append({"message": message})
            continue
        if kind is not None and description.data.get("type") != kind:
            continue
        one = {"name": name, "type": description.data.get("type")}
        one["className"] = (description.data.get("config") or {}).get(_CLASS)
        status = client.status(name)
        if status.error is None:
            one["state"] = _state(status.data)
        shown.append({name: value for name, value in one.items() if value is not None})
    return {**entity("connector_list", text, connectors=shown), "warnings": warnings}


def _state(status: Mapping[str, Any]) -> str:
    state = str(status["connector"]["state"])
    if state != _RUNNING:
        return state
    tasks = status.get("tasks") or ()
    running = sum(task.get("state") == _RUNNING for task in tasks)
    summary = "WARNING" if tasks and not running else _RUNNING
    return f"{summary} ({running}/{len(tasks)} tasks RUNNING)"


def _status(status: Mapping[str, Any]) -> Entity:
    members = ("id", "state", "worker_id", "trace")
    return {
        "name": status.get("name"),
        "connector": _kept(status.get("connector") or {}, members),
        "tasks": [_kept(task, members) for task in status.get("tasks") or ()],
        "type": status.get("type"),
    }


def _kept(values: Mapping[str, Any], members: Sequence[str]) -> Entity:
    return {name: values[name] for name in members if values.get(name) not in (None, "")}


def _config(statement: tree.CreateConnector) -> dict[str, str | None]:
    config = {name: _text(value) for name, value in statement.properties.items()}
    if config.get(_CLASS) == _JDBC_SOURCE:
        key = config.pop("key", None)
        if key is not None:
            made = "ksqlCreateKey,ksqlExtractString"
            given = config.get("transforms")
            config["transforms"] = made if given is None else f"{given},{made}"
            config["transforms.ksqlCreateKey.type"] = _TRANSFORMS + "ValueToKey"
            config["transforms.ksqlCreateKey.fields"] = key
            config["transforms.ksqlExtractString.type"] = _TRANSFORMS + "ExtractField$Key"
            config["transforms.ksqlExtractString.field"] = key
        config.setdefault("tasks.max", "1")
    return config | {"name": statement.name}


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(getattr(value, "value", value))


def _config_errors(client: ConnectClient, config: Mapping[str, str | None]) -> list[str]:
    class_name = config.get(_CLASS)
    if class_name is None:
        shown = ", ".join(f"{name}={text}" for name, text in masked_settings(config).items())
        return [f"Connector config {{{shown}}} contains no connector type"]
    if not class_name.strip():
        return ["Connector type cannot be empty"]
    answer = client.validate(class_name, config)
    if answer.error is not None:
        return [answer.error]
    values = [one.get("value") or {} for one in answer.data.get("configs") or ()]
    return [f"{one['name']} - {'. '.join(one['errors'])}" for one in values if one.get("errors")]


def _exists(client: ConnectClient, name: str, text: str) -> bool:
    answer = client.connectors()
    if answer.error is not None:
        message = f"Failed to check for existing connector: {answer.error}"
        raise ApiError(SERVER_ERROR, message, statement=text)
    return name.lower() in (str(one).lower() for one in answer.data)


def _data(answer: Answer, otherwise: str) -> Any:
    if answer.error is not None:
        raise _error(answer.status, otherwise + answer.error)
    return answer.data


def _error(status: int, message: str) -> ApiError:
    return ApiError(status * 100, message, is_generic=True)
