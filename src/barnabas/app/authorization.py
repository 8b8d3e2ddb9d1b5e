"""A node's authorizer, as its configuration says: Kafka's StandardAuthorizer, or none."""

import logging
from typing import Final

from barnabas.base.clock import Clock
from barnabas.base.config.node import NodeConfig
from barnabas.base.config.validation import AUTHORIZER_KEY, SUPER_USERS_KEY
from barnabas.base.principals import ANONYMOUS
from barnabas.metadata.node import MetadataNode
from barnabas.security.audit import AuditLog
from barnabas.security.authorizer import ALLOW_ALL, Authorizer
from barnabas.security.controller_checks import ControllerChecks
from barnabas.security.standard_authorizer import (
    ALLOW_EVERYONE_KEY,
    AuthorizerSettings,
    StandardAuthorizer,
)

NAMELESS: Final = "PLAINTEXT"
"""Over this protocol nobody says who they are."""

telemetry = logging.getLogger(__name__)


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
            _warn_of_nameless_nodes(config, settings)
        elif config.get_str(SUPER_USERS_KEY) or config.get_bool(ALLOW_EVERYONE_KEY):
            telemetry.warning(
                "%s and %s have no effect without %s: everybody may do everything",
                SUPER_USERS_KEY,
                ALLOW_EVERYONE_KEY,
                AUTHORIZER_KEY,
            )
        metadata.checks = ControllerChecks(self.authorizer)

    def close(self) -> None:
        """Write what the audit log has only counted."""
        if self._audit is not None:
            self._audit.close()


def _warn_of_nameless_nodes(config: NodeConfig, settings: AuthorizerSettings) -> None:
    """Say which listeners nodes cannot use: there they are nobody, and nobody may do nothing."""
    if settings.allows_everyone or ANONYMOUS in settings.super_users:
        return
    listeners = {config.inter_broker_listener_name, *config.controller_listener_names}
    nameless = sorted(
        name for name in listeners if config.protocol_map.get(name, NAMELESS) == NAMELESS
    )
    if nameless:
        telemetry.warning(
            "other nodes come as %s over %s (%s), which super.users does not hold: unless an ACL "
            "allows it ClusterAction on the cluster, they are refused",
            ANONYMOUS,
            ", ".join(nameless),
            NAMELESS,
        )
