"""Writes that another instance leads: sent on to it as they came, its answer given back.

httpx is loaded when the first write is sent on: it takes 6 MB, which a leader never needs.
"""

import logging
import ssl
from collections.abc import Iterable
from typing import TYPE_CHECKING
from urllib.parse import quote_from_bytes

from barnabas.registry import errors
from barnabas.registry.errors import RegistryError
from barnabas.registry.http.answers import Answer
from barnabas.registry.http.config import HttpConfig

if TYPE_CHECKING:
    import httpx

OFFSET_HEADER = b"x-barnabas-offset"
"""On the answer to a forwarded write: the offset in `_schemas` that it rests on."""

NOT_LEADING_HEADER = b"x-barnabas-not-leading"
"""On the answer to a forwarded write of an instance that does not lead, and has done nothing."""

CONNECTIONS_MAX = 100

_SENT_ON = frozenset(
    {
        b"accept",
        b"authorization",
        b"confluent-accept-unknown-properties",
        b"content-type",
        b"x-request-id",
    }
)
"""Headers that always go on to the leader: Confluent's."""

_log = logging.getLogger(__name__)


class NotDoneError(Exception):
    """A write was not done, and will not be: another instance can be asked.

    `refusal` is the client's error if none appears in time.
    """

    def __init__(self, refusal: RegistryError) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


class Forwarder:
    """Connections to the leader. Opened when the first write has to be sent on."""

    def __init__(
        self, config: HttpConfig, transport: "httpx.AsyncBaseTransport | None" = None
    ) -> None:
        self._config = config
        self._transport = transport
        more = (name.strip().lower().encode("latin-1") for name in config.forwarded_headers)
        self._sent_on = _SENT_ON.union(more) - {b"x-forward", b"host", b"content-length"}
        self._client: httpx.AsyncClient | None = None

    async def forward(
        self,
        leader_url: str,
        method: str,
        target: bytes,
        headers: Iterable[tuple[bytes, bytes]],
        body: bytes,
    ) -> tuple[Answer, int | None]:
        """Send a request to the leader.

        Returns its answer of any kind, and the offset that it is based on, None if the leader does
        not say. Raises RegistryError 50003 if there is no answer in time, and NotDoneError if the
        instance cannot be reached or does not lead.
        """
        import httpx

        sent = [(name, value) for name, value in headers if name.lower() in self._sent_on]
        sent += [(b"x-forward", b"true"), (b"accept-encoding", b"identity")]
        client = self._opened()
        try:
            url = httpx.URL(leader_url).copy_with(raw_path=target)
            response = await client.request(method, url, headers=sent, content=body or None)
        except (httpx.HTTPError, httpx.InvalidURL, ssl.SSLError) as fault:
            reason = str(fault) or type(fault).__name__
            refusal = RegistryError(
                errors.FORWARDING_FAILED,
                f"cannot forward the request to the leader at {leader_url}: {reason}",
            )
            if isinstance(fault, httpx.ConnectError):
                raise NotDoneError(refusal) from fault
            _log.warning("cannot forward to the leader at %s: %r", leader_url, fault)
            raise refusal from fault
        if NOT_LEADING_HEADER.decode() in response.headers:
            raise NotDoneError(
                RegistryError(
                    errors.FORWARDING_FAILED,
                    f"the request was forwarded to {leader_url}, which does not lead; try again",
                )
            )
        offset = response.headers.get(OFFSET_HEADER.decode(), "")
        answer = Answer(
            response.content,
            response.status_code,
            content_type=response.headers.get("content-type", "").encode() or None,
        )
        return answer, int(offset) if offset.isascii() and offset.isdigit() else None

    def _opened(self) -> "httpx.AsyncClient":
        import httpx

        if self._client is None:
            read_s = self._config.leader_read_timeout_ms / 1000 or None
            connect_s = self._config.leader_connect_timeout_ms / 1000 or None
            self._client = httpx.AsyncClient(
                transport=self._transport,
                timeout=httpx.Timeout(read_s, connect=connect_s),
                limits=httpx.Limits(max_connections=CONNECTIONS_MAX),
                trust_env=False,
                verify=self._config.leader_tls or True,
            )
        return self._client

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            client, self._client = self._client, None
            await client.aclose()


def target_to_send(parts: Iterable[bytes], query: bytes) -> bytes:
    """The segments of a path and a query as a target that no client or proxy changes.

    Dots that are a whole segment are escaped: they would be taken for steps up and down.
    """
    path = b"".join(
        b"/" + (part.replace(b".", b"%2E") if part in (b".", b"..") else part) for part in parts
    )
    target = path or b"/"
    if query:
        target += b"?" + query
    if not target.isascii():
        target = quote_from_bytes(target, safe="%/?&=:;,@!$'()*+~-._[]").encode()
    return target
