"""A StandardAuthorizer over a metadata image, for tests: ACLs are added and removed as records."""

from barnabas.base.ids import Uuid
from barnabas.node.metadata.image import MetadataImage
from barnabas.node.metadata.replay import ImageDelta
from barnabas.node.security.audit import AuditLog
from barnabas.node.security.authorizer import Caller
from barnabas.node.security.principal import Principal
from barnabas.node.security.standard_authorizer import AuthorizerSettings, StandardAuthorizer
from barnabas.protocol.acls import Operation, PatternType, Permission, ResourceType
from barnabas.protocol.api import ApiKey
from barnabas.protocol.features import METADATA_VERSION
from barnabas.protocol.messages.metadata_records import (
    AccessControlEntryRecord,
    FeatureLevelRecord,
    RemoveAccessControlEntryRecord,
)
from barnabas.protocol.schema import Message
from sim.manual_clock import ManualClock

HOST = "10.0.0.1"


def acl(
    number: int,
    principal: str = "User:alice",
    operation: int = Operation.READ,
    name: str = "orders",
    *,
    resource_type: int = ResourceType.TOPIC,
    pattern: int = PatternType.LITERAL,
    permission: int = Permission.ALLOW,
    host: str = "*",
) -> AccessControlEntryRecord:
    """The record of one ACL; `number` is its id."""
    return AccessControlEntryRecord(
        id=Uuid(number.to_bytes(16, "big")),
        resource_type=resource_type,
        resource_name=name,
        pattern_type=pattern,
        principal=principal,
        host=host,
        operation=operation,
        permission_type=permission,
    )


class AclWorld:
    """One authorizer, and the image that it follows."""

    def __init__(
        self,
        *acls: AccessControlEntryRecord,
        super_users: frozenset[str] = frozenset(),
        allows_everyone: bool = False,
        is_loaded: bool = True,
    ) -> None:
        self.clock = ManualClock()
        self.audit = AuditLog(self.clock)
        settings = AuthorizerSettings(super_users, allows_everyone)
        self.authorizer = StandardAuthorizer(settings, self.audit)
        self.image = MetadataImage(cluster_id="cluster")
        if is_loaded:
            self.replay(FeatureLevelRecord(name=METADATA_VERSION, feature_level=25), *acls)

    def replay(self, *records: Message) -> None:
        """Commit records."""
        delta = ImageDelta(self.image)
        for record in records:
            delta.replay(record)
        self.image = delta.image(self.image.offset + len(records), 1, 0)
        self.authorizer.image_changed(delta, self.image)

    def remove(self, *numbers: int) -> None:
        """Commit the removal of ACLs by their numbers."""
        self.replay(
            *(
                RemoveAccessControlEntryRecord(id=Uuid(number.to_bytes(16, "big")))
                for number in numbers
            )
        )

    def load_snapshot(self, *acls: AccessControlEntryRecord) -> None:
        """Start over with an image that has these ACLs alone, as a snapshot does."""
        self.image = MetadataImage(cluster_id="cluster")
        self.replay(FeatureLevelRecord(name=METADATA_VERSION, feature_level=25), *acls)

    def may(
        self,
        operation: Operation,
        name: str = "orders",
        *,
        user: str = "alice",
        kind: str = "User",
        host: str = HOST,
        resource_type: ResourceType = ResourceType.TOPIC,
        request: int = ApiKey.FETCH,
    ) -> bool:
        """Return whether a caller may do it, logged as an attempt."""
        caller = Caller(Principal(kind, user), host, request)
        return self.authorizer.allows(caller, operation, resource_type, name)

    def may_some(self, operation: Operation, *, user: str = "alice", host: str = HOST) -> bool:
        """Return whether a caller may do it with any topic."""
        caller = Caller(Principal("User", user), host)
        return self.authorizer.allows_some(caller, operation, ResourceType.TOPIC)
