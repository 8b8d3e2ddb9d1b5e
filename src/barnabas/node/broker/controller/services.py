"""Services that the handlers of the controller's listener use."""

import random
from dataclasses import dataclass, field

from barnabas.base.clock import Clock
from barnabas.node.broker.throttling import Throttling
from barnabas.node.metadata.image import MetadataImage
from barnabas.node.metadata.node import MetadataNode
from barnabas.node.security.authorizer import ALLOW_ALL, Authorizer
from barnabas.protocol.api import ApiKey


@dataclass(slots=True)
class ControllerServices:
    """One per node that plays `controller`; its handlers get it with every request."""

    clock: Clock
    random: random.Random
    cluster_id: str
    node_id: int
    metadata: MetadataNode
    authorizer: Authorizer = ALLOW_ALL
    """Whether the sender of a request may do what it asks."""
    throttling: Throttling | None = None
    """Set while any client has a quota."""
    served_apis: set[ApiKey] = field(default_factory=set)

    @property
    def image(self) -> MetadataImage:
        """The cluster's metadata as this node has it."""
        return self.metadata.image
