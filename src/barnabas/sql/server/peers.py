"""The other servers of the service: who they are, what they do, and asking them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol
from urllib.parse import urlsplit

import httpx

from barnabas.base.clock import now_ms
from barnabas.sql.engine.cluster import ClusterError
from barnabas.sql.engine.engine import KsqlEngine
from barnabas.sql.engine.ownership import ALL_SLOTS
from barnabas.sql.server.hosts import HeartbeatConfig, Hosts, no_lags

_log = logging.getLogger(__name__)
INTERNAL = "request.ksql.internal.request"
"""ksqlDB's mark of a request that one server sends another."""
MEDIA_TYPE = "application/vnd.ksql.v1+json"
_ASK_S = 5.0


class Members(Protocol):
    """The members of the service's group."""

    def servers(self) -> Mapping[str, frozenset[int]]:
        """The slots of each server by its address. May raise ClusterError."""
        ...


class Alone:
    """A server without a group: it has all slots."""

    def __init__(self, url: str) -> None:
        self._url = url

    def servers(self) -> Mapping[str, frozenset[int]]:
        return {self._url: ALL_SLOTS}


class Peers:
    """`url`: this server's address, as others reach it. `client` makes what asks them."""

    def __init__(
        self,
        engine: KsqlEngine,
        url: str,
        members: Members | None = None,
        config: HeartbeatConfig | None = None,
        client: Callable[[], httpx.AsyncClient] = httpx.AsyncClient,
    ) -> None:
        self.own = host_of(url)
        self.config = config or HeartbeatConfig()
        self.hosts = Hosts(self.own, self.config, now_ms())
        self._engine = engine
        self._url = url
        self._members: Members = members or Alone(url)
        self._slots: Mapping[str, frozenset[int]] = {url: ALL_SLOTS} if members is None else {}
        self._urls: dict[str, str] = {self.own: url}
        self._make_client = client
        self._client: httpx.AsyncClient | None = None
        self._beats: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    # --- who there is ------------------------------------------------------------------------

    async def run(self) -> None:
        """Find the others, send heartbeats and lags, until cancelled."""
        self._loop = asyncio.get_running_loop()
        config = self.config
        jobs = [self._every(config.discover_interval_ms, self.discover)]
        if config.is_enabled:
            jobs.append(self._every(config.send_interval_ms, self._send_heartbeats))
            jobs.append(self._every(config.check_interval_ms, self._check))
        if config.reports_lag:
            jobs.append(self._every(config.lag_interval_ms, self._send_lags))
        async with self._make_client() as self._client:
            await asyncio.gather(*jobs)

    async def _every(self, interval_ms: int, job: Callable[[], Any]) -> None:
        while True:
            try:
                await job()
            except ClusterError as error:
                _log.warning("cannot list the servers of the service: %s", error)
            except Exception:  # noqa: BLE001  the next time may do better
                _log.exception("a periodic task failed")
            await asyncio.sleep(interval_ms / 1000)

    async def discover(self) -> None:
        """Ask the group who there is."""
        self._slots = await asyncio.to_thread(self._members.servers)
        self._urls = {host_of(url): url for url in self._slots} | {self.own: self._url}
        self.hosts.found(self._urls, now_ms())

    def others(self) -> dict[str, str]:
        """The addresses of the others that are in the group."""
        return {host: url for host, url in self._urls.items() if host != self.own}

    def slots_of(self, host: str) -> frozenset[int]:
        """The slots that a server had when the group was asked."""
        return self._slots.get(self._urls.get(host, ""), frozenset())

    # --- heartbeats and lags -----------------------------------------------------------------

    async def _send_heartbeats(self) -> None:
        message = {"hostInfo": self.own, "timestamp": now_ms()}
        for url in self.others().values():
            # No one waits for an answer: the next heartbeat is as good.
            task = asyncio.create_task(self._beat(url, message))
            self._beats.add(task)
            task.add_done_callback(self._beats.discard)

    async def _beat(self, url: str, message: Any) -> None:
        with suppress(httpx.HTTPError, ValueError):
            await self._post(url, "/heartbeat", message, 1.0)

    async def _check(self) -> None:
        self.hosts.check(now_ms())

    async def _send_lags(self) -> None:
        lags = await asyncio.to_thread(self.own_lags)
        self.hosts.reported(self.own, lags)
        message = {"ksqlHost": self.own, "hostStoreLags": lags}
        others = self.others().values()
        sent = [self._post(url, "/lag", message, _ASK_S) for url in others]
        await asyncio.gather(*sent, return_exceptions=True)

    def own_lags(self) -> dict[str, Any]:
        """Return how far behind their topics this server's tables for pull queries are."""
        by_query: dict[str, Any] = {}
        for name, positions in self._engine.table_positions().items():
            lags = {
                str(partition): {
                    "currentOffsetPosition": position,
                    "endOffsetPosition": end,
                    "offsetLag": max(0, end - position),
                }
                for (_, partition), (position, end) in sorted(positions.items())
            }
            for query_id in self._engine.metastore.writers(name) or [name]:
                by_query[f"{query_id}#{name}"] = {"lagByPartition": lags}
        return {"stateStoreLags": by_query, "updateTimeMs": now_ms()}

    def heartbeat(self, message: Mapping[str, Any]) -> None:
        """Take another's heartbeat. Raises ValueError."""
        self.hosts.received(_host(message.get("hostInfo")), int(message.get("timestamp", "")))

    def lag(self, message: Mapping[str, Any]) -> None:
        """Take another's lags. Raises ValueError."""
        lags = message.get("hostStoreLags")
        if not isinstance(lags, dict):
            raise ValueError("hostStoreLags is missing")
        self.hosts.reported(_host(message.get("ksqlHost")), lags)

    def status(self) -> dict[str, Any]:
        """The answer of /clusterStatus."""
        return {
            host: {
                "hostAlive": status.is_alive,
                "lastStatusUpdateMs": status.updated_ms,
                "activeStandbyPerQuery": self._of_queries(host) if status.is_alive else {},
                "hostStoreLags": status.lags if status.is_alive else no_lags(),
            }
            for host, status in list(self.hosts.statuses.items())
        }

    def _of_queries(self, host: str) -> dict[str, Any]:
        """Return a server's part in each query: its owner runs it, all keep its table."""
        metastore, topics = self._engine.metastore, self._engine.cluster.topics()
        slots = self.slots_of(host)
        queries = {}
        for query_id, running in list(self._engine.queries.items()):
            is_active = running.is_here if host == self.own else running.slot in slots
            sources = map(metastore.source, running.query.plan.sources)
            names = sorted({source.topic for source in sources if source is not None})
            places = [
                {"topic": name, "partition": partition}
                for name in names
                if name in topics
                for partition in range(topics[name].partitions)
            ]
            sink = metastore.source(running.query.plan.sink or "")
            stores = [] if sink is None or not sink.is_table else [sink.name]
            if is_active or stores:
                queries[query_id] = {
                    "activeStores": stores if is_active else [],
                    "activePartitions": places if is_active else [],
                    "standByStores": [] if is_active else stores,
                    "standByPartitions": [] if is_active else places,
                }
        return queries

    # --- asking ------------------------------------------------------------------------------

    async def _post(self, url: str, path: str, body: Any, timeout_s: float) -> Any:
        assert self._client is not None
        headers = {"Content-Type": MEDIA_TYPE}
        answer = await self._client.post(
            f"{url}{path}", json=body, headers=headers, timeout=timeout_s
        )
        answer.raise_for_status()
        return answer.json()

    def ask_all(self, body: Any) -> dict[str, Any]:
        """Each other server's answer to a statement, None where it gives none. Waits."""
        others = self.others()
        if not others or self._loop is None or self._client is None:
            return {}

        async def ask(url: str) -> Any:
            try:
                return await self._post(url, "/ksql", body, _ASK_S)
            except (httpx.HTTPError, ValueError) as error:
                _log.warning("%s does not answer: %s", url, error)
                return None

        async def ask_all() -> list[Any]:
            return await asyncio.gather(*map(ask, others.values()))

        done = asyncio.run_coroutine_threadsafe(ask_all(), self._loop)
        return dict(zip(others, done.result(), strict=True))

    def have_read(self, sequence: int) -> None:
        """Wait until the others have done what the command log says, or do not answer."""
        self.ask_all(
            {
                "ksql": "SHOW VARIABLES;",
                "commandSequenceNumber": sequence,
                "requestProperties": {INTERNAL: True},
            }
        )


def host_of(url: str) -> str:
    """`host:port` of an address."""
    return urlsplit(url).netloc


def _host(given: Any) -> str:
    """`host:port` as ksqlDB's servers write it. Raises ValueError."""
    if isinstance(given, dict):
        given = f"{given.get('host')}:{given.get('port')}"
    host, _, port = str(given or "").rpartition(":")
    if not host or not port.isdigit():
        raise ValueError(f"Invalid host info. Expected format: <hostname>:<port>, but was {given}")
    return f"{host}:{port}"
