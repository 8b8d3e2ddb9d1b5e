"""A node's authorizer, as its configuration says: Kafka's StandardAuthorizer, or none."""

import logging
import os
from logging.handlers import WatchedFileHandler
from typing import Final

from barnabas.base.clock import Clock
from barnabas.base.errors import ConfigError
from barnabas.base.telemetry import formatter
from barnabas.node.config.definitions import LOG_FORMAT_KEY
from barnabas.node.config.node_config import AUTHORIZER_KEY, SUPER_USERS_KEY, NodeConfig
from barnabas.node.metadata.node import MetadataNode
from barnabas.node.security.audit import AuditLog, audit
from barnabas.node.security.authorizer import ALLOW_ALL, Authorizer
from barnabas.node.security.controller_checks import ControllerChecks
from barnabas.node.security.standard_authorizer import (
    ALLOW_EVERYONE_KEY,
    AuthorizerSettings,
    StandardAuthorizer,
)
from barnabas.protocol.well_known import ANONYMOUS

AUDIT_FILE_KEY: Final = "barnabas.audit.file"
NAMELESS: Final = "PLAINTEXT"
"""Over this protocol nobody says who they are."""

telemetry = logging.getLogger(__name__)


class Authorization:
    """One per node, for both of its roles."""

    def __init__(self, config: NodeConfig, clock: Clock, metadata: MetadataNode) -> None:
        """The authorizer follows the node's metadata from its first image on.

        Raises ConfigError where the file of the audit log cannot be written.
        """
        self._audit: AuditLog | None = None
        self._file: logging.Handler | None = None
        self.authorizer: Authorizer = ALLOW_ALL
        settings = AuthorizerSettings.from_config(config)
        if settings is not None:
            self._file = _audit_file(config.get_str(AUDIT_FILE_KEY), config.get_str(LOG_FORMAT_KEY))
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
        if self._file is not None:
            audit.removeHandler(self._file)
            self._file.close()
            audit.propagate = not audit.handlers


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
            "other nodes connect as %s over %s (%s), which is not in super.users: unless an ACL "
            "allows it ClusterAction on the cluster, they are refused",
            ANONYMOUS,
            ", ".join(nameless),
            NAMELESS,
        )


def _audit_file(path: str, style: str) -> logging.Handler | None:
    """Write the audit log to a separate file, if one is named. Raises ConfigError.

    Nodes of one process have one log; the first that names the file opens it.
    """
    names = [getattr(handler, "baseFilename", None) for handler in audit.handlers]
    if not path or os.path.abspath(path) in names:
        return None
    try:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600))
        handler = WatchedFileHandler(path, encoding="utf-8")
    except OSError as error:
        raise ConfigError(AUDIT_FILE_KEY, f"cannot be written: {error}") from None
    handler.setFormatter(formatter(style))
    audit.addHandler(handler)
    audit.propagate = False
    if audit.level == logging.NOTSET:  # also what the node's own log leaves out
        audit.setLevel(logging.INFO)
    return handler
