"""All services of a console."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.console.access import Audit
from barnabas.console.config import ConsoleConfig
from barnabas.console.services.asking import ClusterAccess
from barnabas.console.services.cluster import ClusterService
from barnabas.console.services.decoding import Decoder
from barnabas.console.services.groups import GroupService
from barnabas.console.services.lateness import LatenessService
from barnabas.console.services.messages import MessageService
from barnabas.console.services.security import AclService, QuotaService, UserService
from barnabas.console.services.topics import TopicService
from barnabas.console.services.transactions import TransactionService
from barnabas.schemas.registry_client import RegistryClient

REGISTRY_TIMEOUT_S = 5.0


@dataclass(frozen=True)
class Services:
    """The services behind the pages."""

    cluster: ClusterService
    topics: TopicService
    groups: GroupService
    lateness: LatenessService
    transactions: TransactionService
    acls: AclService
    users: UserService
    quotas: QuotaService
    messages: MessageService
    audit: Audit
    configured: tuple[str, ...]
    """The names of the services that there are."""

    def close(self) -> None:
        """Let go of everything."""
        self.messages.close()
        self.cluster.close()
        self.audit.close()


def open_services(config: ConsoleConfig) -> Services:
    """The services of a configuration; nothing is asked yet. Raises ConfigError."""
    cluster = ClusterService(ClusterAccess(config.bootstrap_servers, config.client))
    urls = config.registry_urls
    registry = RegistryClient(urls, timeout_s=REGISTRY_TIMEOUT_S) if urls else None
    groups = GroupService(cluster)
    return Services(
        cluster,
        TopicService(cluster),
        groups,
        LatenessService(cluster, groups),
        TransactionService(cluster),
        AclService(cluster),
        UserService(cluster),
        QuotaService(cluster),
        MessageService(cluster, Decoder(registry)),
        Audit(config.audit_file),
        ("registry",) if registry is not None else (),
    )
