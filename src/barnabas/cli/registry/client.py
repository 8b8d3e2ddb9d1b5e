"""A client of a schema registry's REST interface, and the options that say which registry."""

from dataclasses import dataclass
from http import HTTPStatus
from typing import ClassVar

from barnabas.cli.errors import CliError, ExitCode
from barnabas.cli.http_service import HttpService

_STATUS_MAX = 599


class RefusedError(CliError):
    """An error that the registry answered with; `number` is Confluent's code."""

    def __init__(self, number: int, message: str) -> None:
        is_missing = number == HTTPStatus.NOT_FOUND or number // 100 == HTTPStatus.NOT_FOUND
        super().__init__(
            f"{message} [{number}]", ExitCode.NOT_FOUND if is_missing else ExitCode.REFUSED
        )
        self.number = number


@dataclass(frozen=True, slots=True)
class Registry(HttpService):
    """Which registry."""

    NAME: ClassVar[str] = "schema registry"
    URL_VARIABLES: ClassVar[tuple[str, ...]] = (
        *("BARNABAS_REGISTRY_URL", "BARNABAS_SCHEMA_REGISTRY_URL", "SCHEMA_REGISTRY_URL"),
    )
    USER_VARIABLE: ClassVar[str] = "BARNABAS_REGISTRY_USER"
    DEFAULT_URL: ClassVar[str] = "http://localhost:8081"
    CONTENT_TYPE: ClassVar[str] = "application/vnd.schemaregistry.v1+json"

    def refused(self, url: str, status: int, number: int, message: str) -> RefusedError:
        """See HttpService."""
        # A number of three digits is HTTP's: the address may be wrong.
        return RefusedError(number, message if number > _STATUS_MAX else f"{url}: {message}")


registry_options = Registry.options(
    "registry",
    of="The registry",
    more=" With /contexts/NAME at its end, names are those of that context.",
    timeout_s=15.0,
    patience="Longest wait for an answer.",
)
"""Options that every command against a registry has: --json, and the argument `registry`."""
