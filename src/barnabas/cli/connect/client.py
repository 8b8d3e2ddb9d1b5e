"""A client of a Connect worker's REST interface, and the options that say which worker."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, ClassVar

from barnabas.cli.errors import CliError, ExitCode
from barnabas.cli.http_service import HttpService

REBALANCE_TRIES = 20
"""Number of retries of a request that a rebalance refuses."""
REBALANCE_S = 0.5


class RefusedError(CliError):
    """An error that the worker answered with."""

    def __init__(self, status: int, message: str) -> None:
        code = ExitCode.NOT_FOUND if status == HTTPStatus.NOT_FOUND else ExitCode.REFUSED
        super().__init__(f"{message} [{status}]", code)
        self.status = status
        self.text = message


@dataclass(frozen=True, slots=True)
class Connect(HttpService):
    """Which workers."""

    NAME: ClassVar[str] = "Connect worker"
    URL_VARIABLES: ClassVar[tuple[str, ...]] = ("BARNABAS_CONNECT_URL",)
    USER_VARIABLE: ClassVar[str] = "BARNABAS_CONNECT_USER"
    DEFAULT_URL: ClassVar[str] = "http://localhost:8083"

    def refused(self, url: str, status: int, number: int, message: str) -> RefusedError:
        """See HttpService."""
        return RefusedError(status, message)

    def ask(
        self,
        method: str,
        path: Sequence[str | int],
        query: Mapping[str, Any] | None = None,
        body: Any = None,
    ) -> Any:
        """Return the decoded answer. While workers rebalance, the request is repeated."""
        import time

        for _ in range(REBALANCE_TRIES):
            try:
                return HttpService.ask(self, method, path, query, body)
            except RefusedError as error:
                if error.status != HTTPStatus.CONFLICT or "momentarily" not in error.text:
                    raise
            time.sleep(REBALANCE_S)
        return HttpService.ask(self, method, path, query, body)


connect_options = Connect.options(
    "connect",
    of="The worker, or several",
    timeout_s=100.0,
    patience="Longest wait for an answer; workers give up after 90.",
)
"""Options that every command against a worker has: --json, and the argument `connect`."""
