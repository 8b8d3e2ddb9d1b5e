"""The client that sent a request to the group coordinator."""

from dataclasses import dataclass

from barnabas.node.coordinator.group.step import Client, KeepVisible
from barnabas.node.security.principal import Principal


@dataclass(frozen=True, slots=True)
class ClientInfo:
    """The sender of a request, and the version of its API."""

    client_id: str | None
    client_host: str
    principal: Principal
    api_version: int
    keep_visible: KeepVisible | None = None
    """Of topics, those that the client may know of; None: it may know of all."""

    @property
    def sender(self) -> Client:
        """The sender as groups note it."""
        return Client(
            self.client_id or "", f"/{self.client_host}", self.api_version, self.keep_visible
        )
