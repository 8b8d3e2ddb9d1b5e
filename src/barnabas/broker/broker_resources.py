"""Configuration resources that belong to one broker: the request must have come to that one.

Source: Kafka's ConfigAdminManager.
"""

from barnabas.broker.services import BrokerServices
from barnabas.metadata.image import ConfigResourceType


def check_broker_resource(services: BrokerServices, resource_type: int, name: str) -> str | None:
    """Why this node does not answer for the resource, or None if it does."""
    if resource_type != ConfigResourceType.BROKER or not name:
        return None
    return check_node_id(services, name)


def check_node_id(services: BrokerServices, name: str) -> str | None:
    """Why `name` is not this node's id, or None if it is."""
    try:
        node_id = int(name)
    except ValueError:
        return f"Node id must be an integer, but it is: {name}"
    if node_id != services.node_id:
        return f"Unexpected broker id, expected {services.node_id}, but received {name}"
    return None
