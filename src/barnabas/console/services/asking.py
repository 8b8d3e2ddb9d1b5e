"""Access to a cluster: connections that threads share, and the errors of requests."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, Final, Generic, TypeVar

from barnabas.base.tls.contexts import PropertyKeys
from barnabas.kafka import wire_admin
from barnabas.kafka.security import Security
from barnabas.kafka.settings import librdkafka_settings
from barnabas.kafka.wire import AccessError, Brokers, WireError
from barnabas.kafka.wire_admin import AdminError, WireAdmin
from barnabas.protocol.api import Api
from barnabas.protocol.errors import EncodeError, ErrorCode
from barnabas.protocol.schema import Message

CLIENT_ID: Final = "barnabas-console"
TIMEOUT_S: Final = 10.0
IDLE_MAX: Final = 8
"""Sets of connections that are kept for later requests."""
TOGETHER_MAX: Final = 16
"""Nodes that are asked at the same time."""

KNOWN_S: Final = 5.0
"""How long a change may take to reach the nodes that show it, before the page is shown anyway."""
KNOWN_POLL_S: Final = 0.05

K = TypeVar("K")
T = TypeVar("T")
R = TypeVar("R", bound=Message)


class AwayError(Exception):
    """A service does not answer; the message says which and why."""

    def __init__(self, message: str, service: str = "the cluster") -> None:
        super().__init__(message)
        self.service = service
        """The service that does not answer, in words."""


class RefusedError(Exception):
    """A service refuses a request; the message is its reason."""


class AbsentError(RefusedError):
    """The thing that was asked for does not exist."""


def check(code: int, message: str | None = None, what: str = "") -> None:
    """Raise AbsentError or RefusedError if `code` is an error of Kafka's."""
    if code == ErrorCode.NONE:
        return
    error = ErrorCode.of(code)
    text = f"{error.name}: {message or error.message}"
    if error == ErrorCode.SECURITY_DISABLED:
        text += "; every client may do everything. Set authorizer.class.name to use ACLs."
    absent = (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.RESOURCE_NOT_FOUND,
        ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
    )
    kind = AbsentError if error in absent else RefusedError
    raise kind(f"{what}: {text}" if what else text)


def until_known(is_known: Callable[[], bool]) -> None:
    """Wait, for `KNOWN_S`, until nodes know a change that was made.

    Brokers answer once the controller has decided, and hear of it from the metadata log. If one
    cannot be asked, the change is made all the same, and the next page says what is wrong.
    """
    deadline_s = time.monotonic() + KNOWN_S
    with suppress(AwayError, RefusedError, AdminError):
        while not is_known() and time.monotonic() < deadline_s:
            time.sleep(KNOWN_POLL_S)


class ClusterAccess:
    """Connections to the brokers of one cluster, for many threads."""

    def __init__(
        self, bootstrap_servers: str, settings: Mapping[str, str], timeout_s: float = TIMEOUT_S
    ) -> None:
        """`settings` are a client's, with Java's names or librdkafka's. Raises ConfigError."""
        self.bootstrap_servers = bootstrap_servers
        self._settings = dict(settings)
        self._access = Security(PropertyKeys(self._settings)).access(bootstrap_servers, timeout_s)
        self._idle: list[Brokers] = []
        self._idle_admins: list[WireAdmin] = []
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(TOGETHER_MAX, "console-nodes")

    def librdkafka(self, **more: Any) -> dict[str, Any]:
        """Settings for a client of confluent-kafka, `more` on top."""
        own = {
            "bootstrap.servers": self.bootstrap_servers,
            "client.id": CLIENT_ID,
            "log_level": 2,
        }
        return own | librdkafka_settings(self._settings) | more

    @contextmanager
    def brokers(self) -> Iterator[Brokers]:
        """Connections for one thread. Raises AwayError where no broker answers."""
        with self._lock:
            found = self._idle.pop() if self._idle else Brokers(self._access)
        try:
            yield found
        except (WireError, AccessError) as error:
            found.close()
            raise AwayError(str(error)) from error
        except BaseException:
            found.close()
            raise
        with self._lock:
            if len(self._idle) < IDLE_MAX:
                self._idle.append(found)
                return
        found.close()

    @contextmanager
    def admin(self) -> Iterator[WireAdmin]:
        """Requests of administration, for one thread. Raises AwayError, RefusedError, AbsentError.

        The connections of a failed request are not used again.
        """
        with self._lock:
            found = self._idle_admins.pop() if self._idle_admins else None
        if found is None:
            found = WireAdmin(self._access)
        is_whole = False
        try:
            yield found
            is_whole = True
        except AdminError as error:
            raise _told(error) from error
        except EncodeError as error:
            raise RefusedError(f"the brokers are too old for this: {error}") from error
        finally:
            with self._lock:
                is_kept = is_whole and len(self._idle_admins) < IDLE_MAX
                if is_kept:
                    self._idle_admins.append(found)
            if not is_kept:
                found.close()

    def any(self, api: Api[Message, R], request: Message) -> R:
        """The answer of any broker. Raises AwayError.

        A kept connection may have ended since: the second try has a new one.
        """
        try:
            with self.brokers() as brokers:
                return brokers.any().call(api, request)
        except AwayError:
            with self.brokers() as brokers:
                brokers.close()
                return brokers.any().call(api, request)

    def at(
        self,
        address: tuple[str, int],
        api: Api[Message, R],
        request: Message,
        version_max: int | None = None,
    ) -> R:
        """The answer of one broker. Raises AwayError."""
        try:
            with self.brokers() as brokers:
                return brokers.at(*address).call(api, request, version_max)
        except AwayError:
            with self.brokers() as brokers:
                brokers.close()
                return brokers.at(*address).call(api, request, version_max)

    def coordinator(self, name: str, key_type: int) -> tuple[str, int]:
        """The address of a coordinator. Raises AwayError, RefusedError."""
        with self.brokers() as brokers:
            error, address = brokers.coordinator(name, key_type)
        check(error, what=f"the coordinator of {name}")
        return address

    def each(self, ask: Callable[[K], T], about: Iterable[K]) -> dict[K, T | Exception]:
        """Return what `ask` returns, called at the same time; an AwayError or RefusedError is one.

        Raises AwayError after `close`.
        """
        try:
            futures = {one: self._pool.submit(ask, one) for one in about}
        except RuntimeError as error:  # while the console ends
            raise AwayError("the console ends") from error
        found: dict[K, T | Exception] = {}
        for one, future in futures.items():
            try:
                found[one] = future.result()
            except (AwayError, RefusedError) as error:
                found[one] = error
        return found

    def close(self) -> None:
        """Close the connections."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            idle: list[Brokers | WireAdmin] = [*self._idle, *self._idle_admins]
            self._idle, self._idle_admins = [], []
        for one in idle:
            one.close()


def _told(error: AdminError) -> Exception:
    """A failure of administration as the console has it."""
    if isinstance(error, wire_admin.RefusedError):
        try:
            check(error.code, error.message, error.what)
        except RefusedError as refused:
            return refused
    if isinstance(error, wire_admin.AbsentError):
        return AbsentError(str(error))
    if isinstance(error, wire_admin.SenselessError | wire_admin.UnsupportedError):
        return RefusedError(str(error))
    return AwayError(str(error))


class Kept(Generic[T]):
    """An answer that is used again for a while; threads that ask at once wait for one answer.

    While one thread asks again, others get the last answer for `stale_s` longer. A failure is the
    answer for those that waited for it: else each would wait for its own in turn.
    """

    def __init__(
        self,
        ask: Callable[[], T],
        kept_s: float,
        now_s: Callable[[], float] = time.monotonic,
        *,
        stale_s: float = 0.0,
    ) -> None:
        self._ask, self._kept_s, self._stale_s, self._now_s = ask, kept_s, stale_s, now_s
        self._changed = threading.Condition()
        self._answer: tuple[float, T] | None = None
        self._is_asking = False
        self._forgotten = 0
        self._failures = 0
        self._failure: AwayError | None = None

    def get(self) -> T:
        """The answer. Raises what `ask` does."""
        with self._changed:
            while True:
                if (found := self._young(self._kept_s)) is not None:
                    return found[1]
                if not self._is_asking:
                    self._is_asking = True
                    forgotten = self._forgotten
                    break
                if (found := self._young(self._kept_s + self._stale_s)) is not None:
                    return found[1]
                before, failures = self._answer, self._failures
                self._changed.wait_for(lambda: not self._is_asking)
                if self._failure is not None and failures != self._failures:
                    raise AwayError(str(self._failure), self._failure.service)
                if self._answer is not None and self._answer is not before:
                    return self._answer[1]
        return self._asked(forgotten)

    def forget(self, older_s: float = 0.0) -> None:
        """Ask again next time, if the answer is older than this.

        An answer that is on its way is young, but was asked for before: 0 does not keep it either.
        """
        with self._changed:
            if older_s <= 0:
                self._forgotten += 1
            if self._answer is not None and self._now_s() - self._answer[0] >= older_s:
                self._answer = None

    def _young(self, age_s: float) -> tuple[float, T] | None:
        """The answer with its time, if it is not older than this."""
        if self._answer is None or self._now_s() - self._answer[0] > age_s:
            return None
        return self._answer

    def _asked(self, forgotten: int) -> T:
        try:
            found = self._ask()
        except BaseException as error:
            with self._changed:
                if isinstance(error, AwayError):
                    self._failures, self._failure = self._failures + 1, error
                self._ended()
            raise
        with self._changed:
            if forgotten == self._forgotten:
                self._answer = self._now_s(), found
            self._ended()
        return found

    def _ended(self) -> None:
        self._is_asking = False
        self._changed.notify_all()
