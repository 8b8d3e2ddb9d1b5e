"""A node's authorizer, as its configuration says: Kafka's StandardAuthorizer, or none."""

from barnabas.base.clock import Clock
from barnabas.base.config.node import NodeConfig
from barnabas.metadata.node import MetadataNode
from barnabas.security.audit import AuditLog
from barnabas.security.authorizer import ALLOW_ALL, Authorizer
from barnabas.security.controller_checks import ControllerChecks
from barnabas.security.standard_authorizer import AuthorizerSettings, StandardAuthorizer


class Authorization:
    """One per node, for both of its roles."""

    def __init__(self, config: NodeConfig, clock: Clock, metadata: MetadataNode) -> None:
        """The authorizer follows the node's metadata from its first image on."""
        self._audit: AuditLog | None = None
        self.authorizer: Authorizer = ALLOW_ALL
        settings = AuthorizerSettings.from_config(config)
        if settings is not None:
            self._audit = AuditLog(clock)
            standard = StandardAuthorizer(settings, self._audit)
            metadata.add_listener(standard.image_changed)
            self.authorizer = standard
        metadata.checks = ControllerChecks(self.authorizer)

    def close(self) -> None:
        """Write what the audit log has only counted."""
        if self._audit is not None:
            self._audit.close()
