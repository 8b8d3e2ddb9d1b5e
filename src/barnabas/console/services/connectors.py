"""Connectors of a Kafka Connect worker: states, settings without secrets, and what changes them."""

from __future__ import annotations

import json
import re
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar
from weakref import WeakValueDictionary

from barnabas.base.backoff import Doubling
from barnabas.console.services.asking import AbsentError, AwayError, Kept, RefusedError
from barnabas.console.services.decoding import MASK
from barnabas.console.services.rest import Rest, Shapes, path
from barnabas.console.services.topics import Asked, Slice

HIDDEN: Final = "[hidden]"
"""What stands for a secret; a configuration that has it keeps the secret as it is."""
LIST_KEPT_S: Final = 2.0
CONFIGS_KEPT_MAX: Final = 256
NAMED_MAX: Final = 5
"""Settings that an error names."""
SECRET_CHARS_MIN: Final = 4
"""Shorter secrets are not taken out of texts: they would hide half of the text."""
WORKS: Final = ("pause", "resume", "stop")
REBALANCE_S: Final = 10.0
"""A request waits so long for the end of a rebalance of the workers' group."""
_PAUSE_S, _PAUSE_MAX_S = 0.05, 0.5
_REBALANCES: Final = "Cannot complete request"
"""How a worker begins the reason, while the group does; it has done nothing then."""
_UNASSIGNED: Final[Mapping[str, Any]] = {"connector": {"state": "UNASSIGNED"}}
_CAUSE: Final = "Caused by: "
_CLASS: Final = re.compile(r"(?:Caused by: )?[\w.$]*(?:Error|Exception)(?=:|$)")
"""The class of an error, at the start of a line of a trace."""
_FAILED: Final = "FAILED"
_PASSWORD: Final = "PASSWORD"
_SECRET_NAME: Final = re.compile(
    r"passw|passphrase|secret|token|credential|jaas|private|access.?key|api.?key|user\.info|"
    r"authorization|connection\.string",
    re.IGNORECASE,
)
_SECRET_VALUE: Final = re.compile(
    r"://[^/@\s]*:[^/@\s]*@|(passw|secret|token)\w*\s*=", re.IGNORECASE
)
_PLACE_NAME: Final = re.compile(
    r"host|url|uri|endpoint|server|broker|address|\bport\b|proxy|connection|registry|account|"
    r"region|bucket|database|db\.?name|user|class|converter$|protocol|ssl|tls|sasl|provider|"
    r"driver|path|file|dir\b",
    re.IGNORECASE,
)
_PLACE_VALUE: Final = re.compile(r"://|[\w\])]:\d|\$\{")
"""Settings that say where a connector goes with its secrets, or what takes them there."""
_PLAIN: Final = frozenset({"name", "connector.class", "tasks.max", "topics", "topics.regex"})
"""Settings that are shown even if the worker does not say what is secret."""
_ANSWER: Final = Shapes("the Connect worker")
_members, _listed, _number = _ANSWER.members, _ANSWER.listed, _ANSWER.whole


@dataclass(frozen=True, slots=True)
class ConnectorRow:
    """A connector in a list; `tasks` counts its tasks by state."""

    name: str
    type: str
    plugin: str
    state: str
    worker: str
    tasks: Mapping[str, int]
    reason: str | None
    """The first line of what failed first."""
    address: str = ""
    """The address at which it was found, if the console asks several."""
    elsewhere: tuple[str, ...] = ()
    """Addresses of other workers that have a connector of the same name."""


@dataclass(frozen=True, slots=True)
class Found(Slice[ConnectorRow]):
    """A page of connectors; `away` says which workers did not answer, and why."""

    away: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Listing:
    """The connectors of all workers that answered."""

    rows: Sequence[ConnectorRow]
    homes: Mapping[str, tuple[int, ...]]
    """By connector the places of the addresses at which it is: several for a group of workers."""
    away: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Task:
    """A task; `trace` says why it failed, or what it waits for if it is UNASSIGNED."""

    id: int
    state: str
    worker: str
    trace: str | None


@dataclass(frozen=True, slots=True)
class Connector:
    """A connector with its tasks; values of `config` that are secret are HIDDEN."""

    name: str
    type: str
    state: str
    worker: str
    trace: str | None
    tasks: tuple[Task, ...]
    config: Mapping[str, str]


class ChangedError(RefusedError):
    """Somebody else has changed a configuration since the user saw it; `config` is the new one."""

    def __init__(self, name: str, changed: Sequence[str], config: Mapping[str, str]) -> None:
        names = ", ".join(changed[:NAMED_MAX]) + (", …" if len(changed) > NAMED_MAX else "")
        super().__init__(f"{name} has changed since it was read: {names}")
        self.config = config


@dataclass(frozen=True, slots=True)
class Field:
    """A setting as the worker defines it, and what is wrong with its value."""

    name: str
    type: str
    is_required: bool
    importance: str
    default: str | None
    doc: str
    recommended: tuple[str, ...]
    errors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Plugin:
    """A kind of connectors that a worker has."""

    name: str
    type: str
    version: str | None
    addresses: tuple[str, ...]
    """The workers that offer the plugin."""


class WorkerRest(Rest):
    """Workers of one or more groups. A request that a rebalance comes between is sent again."""

    def ask(self, method: str, where: str, body: Any = None) -> Any:
        """As Rest does."""
        end_s = time.monotonic() + REBALANCE_S
        pauses_s = Doubling(_PAUSE_S, _PAUSE_MAX_S)
        while True:
            try:
                return super().ask(method, where, body)
            except RefusedError as error:
                if not str(error).startswith(_REBALANCES) or time.monotonic() >= end_s:
                    raise
            time.sleep(pauses_s.next())


class ConnectorService:
    """Connectors of the workers at several addresses: of one group, or that know nothing of others.

    Methods block, and raise AwayError and RefusedError. A connector is asked for where it is.
    """

    def __init__(self, rest: Rest) -> None:
        self._rest = rest
        self._all = Kept(self._ask, LIST_KEPT_S)
        self._secrets: OrderedDict[str, frozenset[str] | None] = OrderedDict()
        self._changing: WeakValueDictionary[str, threading.Lock] = WeakValueDictionary()
        """By connector, held while its configuration changes."""
        self._lock = threading.Lock()

    def close(self) -> None:
        """Let go of the worker."""
        self._rest.close()

    def find(
        self,
        asked: Asked,
        *,
        state: str = "",
        allowed: Callable[[str], bool] = lambda _: True,
    ) -> Found:
        """Connectors by their names and plugins, failed ones first.

        `state`: of the connector or one of its tasks.
        """
        listing = self._all.get()
        found = [
            row
            for row in listing.rows
            if state in ("", row.state, *row.tasks)
            and asked.fits(f"{row.name} {row.plugin}")
            and allowed(row.name)
        ]
        part = asked.of(found)
        return Found(part.rows, part.total, part.page, listing.away)

    def _ask(self) -> _Listing:
        where = "/connectors?expand=status&expand=info"
        answers, away = self._everywhere(where)
        rows: dict[str, ConnectorRow] = {}
        homes: dict[str, tuple[int, ...]] = {}
        for place, answer in answers:
            address = self._rest.urls[place] if self._is_several else ""
            for name, one in _members(answer).items():
                row = replace(_row(name, _members(one)), address=address)
                first = rows.setdefault(name, row)
                if first.worker == row.worker:  # of one group, all of which know where it runs
                    homes[name] = (*homes.get(name, ()), place)
                else:
                    rows[name] = replace(first, elsewhere=(*first.elsewhere, address))
        found = sorted(rows.values(), key=lambda row: (row.reason is None, row.name))
        return _Listing(found, homes, away)

    def plugins(self) -> list[Plugin]:
        """The kinds of connectors that there are."""
        found: dict[str, Plugin] = {}
        for place, answer in self._everywhere(path("connector-plugins"))[0]:
            if not isinstance(answer, list):
                raise RefusedError("the Connect worker's list of plugins is not a list")
            for one in map(_members, answer):
                name, address = str(one.get("class")), self._rest.urls[place]
                known = found.get(name)
                if known is None:
                    kind, version = str(one.get("type")), one.get("version")
                    found[name] = Plugin(name, kind, version, (address,))
                elif address not in known.addresses:
                    found[name] = replace(known, addresses=(*known.addresses, address))
        return list(found.values())

    @property
    def _is_several(self) -> bool:
        return len(self._rest.urls) > 1

    def _everywhere(self, where: str) -> tuple[list[tuple[int, Any]], tuple[str, ...]]:
        """The answers of all addresses, and why others did not answer. Raises if none does."""
        places = range(len(self._rest.urls))
        if not self._is_several:
            return [(0, self._rest.ask("GET", where))], ()
        answers = self._rest.each(
            lambda place: (self._rest.only([place]).ask("GET", where),), places
        )
        found = [(place, one[0]) for place, one in enumerate(answers) if isinstance(one, tuple)]
        away = tuple(one for one in answers if isinstance(one, str))
        if not found:
            raise AwayError("; ".join(away), self._rest.name)
        return found, away

    def _at(self, name: str) -> Rest:
        """The workers that have a connector. Raises AbsentError, AwayError."""
        if not self._is_several:
            return self._rest
        for _ in range(2):
            listing = self._all.get()
            if name in listing.homes:
                return self._rest.only(listing.homes[name])
            self._all.forget()  # it may be new
        if listing.away:
            raise AwayError("; ".join(listing.away), self._rest.name)
        raise AbsentError(f"no worker has a connector {name}")

    def _of_new(self, address: str) -> Rest:
        """The worker at an address, or the first."""
        urls = self._rest.urls
        if address and address not in urls:
            raise RefusedError(f"{address} is not an address of the console's workers")
        return self._rest.only([urls.index(address) if address else 0])

    def one(self, name: str) -> Connector:
        """A connector without its secrets."""
        config = self._config(name)
        status = self._status(name)
        secrets = self._secret_names(name, config)
        hide = _hiding(config, secrets)
        head = _members(status.get("connector") or {})
        tasks = tuple(
            Task(
                _number(one.get("id")),
                str(one.get("state")),
                str(one.get("worker_id", "")),
                hide(one.get("trace")),
            )
            for one in map(_members, _listed(status.get("tasks")))
        )
        return Connector(
            name,
            str(status.get("type", "unknown")),
            str(head.get("state", "UNKNOWN")),
            str(head.get("worker_id", "")),
            hide(head.get("trace")),
            tasks,
            _shown(config, secrets),
        )

    def sink_config(self, name: str) -> Mapping[str, str] | None:
        """A sink's whole configuration, secrets too; None for a source."""
        config = self._config(name)
        return None if self._status(name).get("type") == "source" else config

    def _status(self, name: str) -> Mapping[str, Any]:
        """The states of a connector that exists; Kafka's workers have none of a new one."""
        try:
            return _members(self._at(name).ask("GET", path("connectors", name, "status")))
        except AbsentError:
            return _UNASSIGNED

    def work(self, name: str, what: str) -> None:
        """Pause, resume or stop a connector; the worker does it a little later."""
        if what not in WORKS:
            raise RefusedError(f"{what} is none of {', '.join(WORKS)}")
        self._at(name).ask("PUT", path("connectors", name, what))
        self._all.forget()

    def restart(self, name: str, *, tasks: bool, only_failed: bool) -> None:
        """Restart a connector, with its tasks if asked for, or only what has failed."""
        query = {"includeTasks": str(tasks).lower(), "onlyFailed": str(only_failed).lower()}
        self._at(name).ask("POST", path("connectors", name, "restart", **query))
        self._all.forget()

    def restart_task(self, name: str, task: int) -> None:
        """Restart one task."""
        self._at(name).ask("POST", path("connectors", name, "tasks", str(task), "restart"))
        self._all.forget()

    def delete(self, name: str) -> None:
        """Delete a connector; a source's offsets stay."""
        self._at(name).ask("DELETE", path("connectors", name))
        self._all.forget()

    def check(
        self, name: str, config: Mapping[str, str], *, is_new: bool = False, address: str = ""
    ) -> list[Field]:
        """What the worker says of a configuration: its settings, and what is wrong with each.

        `address`: of the worker that a new connector is for; the first by default.
        """
        whole = self._whole(name, config)
        hide = _hiding(whole, None)
        worker = self._of_new(address) if is_new else self._at(name)
        return [_field(one, hide) for one in self._validated(worker, whole)]

    def create(self, name: str, config: Mapping[str, str], address: str = "") -> None:
        """Create a connector, at an address."""
        whole = self._whole(name, config)
        body = {"name": name, "config": whole}
        self._send(lambda: self._of_new(address).ask("POST", path("connectors"), body), whole)

    def change(
        self, name: str, config: Mapping[str, str], before: Mapping[str, str] | None = None
    ) -> None:
        """Change a connector's configuration.

        `before` is the one that the user saw: if it is another by now, this raises ChangedError.
        A change that reaches the worker by another way can still come in between.
        """
        with self._lock:
            changing = self._changing.setdefault(name, threading.Lock())
        with changing:
            now = self._config(name)  # the request would create a connector that is gone
            if before is not None:
                seen = _shown(now, self._secret_names(name, now))
                if changed := sorted(_differing(before, seen)):
                    raise ChangedError(name, changed, seen)
            whole = self._whole(name, config)
            where = path("connectors", name, "config")
            self._send(lambda: self._at(name).ask("PUT", where, whole), whole)

    def _send(self, send: Callable[[], Any], config: Mapping[str, str]) -> None:
        """Send a configuration; a refusal does not quote its secrets."""
        hide = _hiding(config, None)
        try:
            send()
        except AbsentError:
            raise
        except RefusedError as error:
            raise RefusedError(hide(str(error)) or "") from None
        self._all.forget()

    def _whole(self, name: str, config: Mapping[str, str]) -> dict[str, str]:
        """A configuration with the secrets that it keeps."""
        kept: Mapping[str, str] = {}
        if HIDDEN in config.values():
            kept = self._config(name)
        found = {**config, "name": name}
        places = [key for key in _changed(kept, config) if _is_place(key, kept, config)]
        for key, value in config.items():
            if value == HIDDEN:
                if key not in kept:
                    raise RefusedError(f"{key}: there is no secret to keep; write it")
                if places:
                    raise RefusedError(
                        f"{key}: write the secret again: {', '.join(sorted(places)[:3])} "
                        "changes, which may send it elsewhere"
                    )
                found[key] = kept[key]
        return found

    def _config(self, name: str) -> dict[str, str]:
        found = _members(self._at(name).ask("GET", path("connectors", name, "config")))
        return {key: str(value) for key, value in found.items()}

    @staticmethod
    def _validated(worker: Rest, config: Mapping[str, str]) -> Sequence[Mapping[str, Any]]:
        plugin = config.get("connector.class", "")
        if not plugin:
            raise RefusedError("connector.class is missing")
        where = path("connector-plugins", plugin, "config", "validate")
        found = _members(worker.ask("PUT", where, config))
        return [_members(one) for one in _listed(found.get("configs"))]

    def _secret_names(self, name: str, config: Mapping[str, str]) -> frozenset[str] | None:
        """The settings of type PASSWORD; None if the worker does not say."""
        key = json.dumps([name, config], sort_keys=True)
        with self._lock:
            if key in self._secrets:
                self._secrets.move_to_end(key)
                return self._secrets[key]
        try:
            told = self._validated(self._at(name), config)
            definitions = [_members(one.get("definition") or {}) for one in told]
        except RefusedError:  # its plugin is gone, for one
            return None
        found = frozenset(
            str(one.get("name")) for one in definitions if one.get("type") == _PASSWORD
        )
        with self._lock:
            self._secrets[key] = found
            while len(self._secrets) > CONFIGS_KEPT_MAX:
                self._secrets.popitem(last=False)
        return found


def _shown(config: Mapping[str, str], secrets: frozenset[str] | None) -> dict[str, str]:
    """A configuration for users."""
    return {
        key: HIDDEN if _is_secret(key, value, secrets) else value
        for key, value in sorted(config.items())
    }


def _differing(one: Mapping[str, str], other: Mapping[str, str]) -> set[str]:
    """The settings in which two configurations for users differ, as far as they show it."""
    both = one.keys() & other.keys()
    pairs = {key: {one[key], other[key]} for key in both if one[key] != other[key]}
    return (one.keys() ^ other.keys()) | {key for key in pairs if HIDDEN not in pairs[key]}


def _changed(kept: Mapping[str, str], config: Mapping[str, str]) -> set[str]:
    """The settings that a configuration has otherwise than the kept one, or without it."""
    keys = (kept.keys() | config.keys()) - {"name"}
    return {key for key in keys if config.get(key) not in (HIDDEN, kept.get(key))}


def _is_place(key: str, *configs: Mapping[str, str]) -> bool:
    """Return whether a setting may say where a connector's secrets go."""
    if any(_PLACE_VALUE.search(config.get(key, "")) for config in configs):
        return True
    return _PLACE_NAME.search(key) is not None and _SECRET_NAME.search(key) is None


def _is_secret(name: str, value: str, secrets: frozenset[str] | None) -> bool:
    if secrets is None and name not in _PLAIN:
        return True
    is_named = name in (secrets or ()) or _SECRET_NAME.search(name) is not None
    return is_named or _SECRET_VALUE.search(value) is not None


def _hiding(
    config: Mapping[str, str], secrets: frozenset[str] | None
) -> Callable[[Any], str | None]:
    """Return a function that removes a configuration's secrets from a text."""
    known = secrets or frozenset()
    found = sorted(
        {
            value
            for name, value in config.items()
            if len(value) >= SECRET_CHARS_MIN and _is_secret(name, value, known)
        },
        key=len,
        reverse=True,
    )

    def hide(text: Any) -> str | None:
        if not text:
            return None
        shown = str(text)
        for secret in found:
            shown = shown.replace(secret, HIDDEN)
        return shown

    return hide


def _row(name: str, found: Mapping[str, Any]) -> ConnectorRow:
    status, info = _members(found.get("status") or {}), _members(found.get("info") or {})
    head = _members(status.get("connector") or {})
    tasks = [_members(one) for one in _listed(status.get("tasks"))]
    config = {key: str(value) for key, value in _members(info.get("config") or {}).items()}
    traces = [one.get("trace") for one in (head, *tasks) if one.get("state") == _FAILED]
    reason = _hiding(config, None)(_reason(traces[0])) if traces else None
    return ConnectorRow(
        name,
        str(status.get("type") or info.get("type") or "unknown"),
        config.get("connector.class", "").rpartition(".")[2],
        str(head.get("state", "UNKNOWN")),
        str(head.get("worker_id", "")),
        dict(Counter(str(one.get("state")) for one in tasks)),
        reason,
    )


def _reason(trace: Any) -> str:
    """What failed first: of a trace of Java's the last cause, otherwise the first line."""
    lines = str(trace or "").strip().splitlines()
    causes = [line.removeprefix(_CAUSE) for line in lines if line.startswith(_CAUSE)]
    return [*lines[:1], *causes][-1] if lines else "it failed; the worker does not say why"


Traced = TypeVar("Traced", ConnectorRow, Connector)


def without_texts(found: Traced) -> Traced:
    """A connector that shows only the classes of errors: their texts may quote masked fields."""
    if isinstance(found, ConnectorRow):
        return replace(found, reason=_classes(found.reason))
    tasks = tuple(
        replace(one, trace=_classes(one.trace)) if one.state == _FAILED else one
        for one in found.tasks
    )
    trace = _classes(found.trace) if found.state == _FAILED else found.trace
    return replace(found, trace=trace, tasks=tasks)


def _classes(trace: str | None) -> str | None:
    if trace is None:
        return None
    first, *more = trace.strip().splitlines() or [""]
    named = [found for line in more if line.startswith(_CAUSE) and (found := _CLASS.match(line))]
    if start := _CLASS.match(first):
        named.insert(0, start)
    return "\n".join(f"{one[0]}: {MASK}" for one in named) or MASK


def _field(found: Mapping[str, Any], hide: Callable[[Any], str | None]) -> Field:
    about, value = _members(found.get("definition") or {}), _members(found.get("value") or {})
    kind = str(about.get("type", "STRING"))
    default = about.get("default_value")
    return Field(
        str(about.get("name") or value.get("name")),
        kind,
        bool(about.get("required")),
        str(about.get("importance", "")),
        None if default is None or kind == _PASSWORD else str(default),
        str(about.get("documentation") or ""),
        tuple(str(one) for one in _listed(value.get("recommended_values"))),
        tuple(hide(one) or "" for one in _listed(value.get("errors"))),
    )
