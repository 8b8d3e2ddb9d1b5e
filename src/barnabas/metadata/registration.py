"""The requests by which a node makes itself known to the controller, its own included."""

from collections.abc import Mapping

from barnabas.base.ids import Uuid
from barnabas.metadata.features import SUPPORTED_FEATURES
from barnabas.metadata.image import Endpoint
from barnabas.protocol.messages import broker_registration as broker
from barnabas.protocol.messages import controller_registration as controller


def broker_registration(
    *,
    broker_id: int,
    cluster_id: str,
    incarnation_id: Uuid,
    listeners: Mapping[str, Endpoint],
    rack: str | None,
    log_dirs: list[Uuid],
    previous_broker_epoch: int,
) -> broker.BrokerRegistrationRequest:
    """A broker's registration, with every feature level that this release can run."""
    return broker.BrokerRegistrationRequest(
        broker_id=broker_id,
        cluster_id=cluster_id,
        incarnation_id=incarnation_id,
        listeners=[
            broker.Listener(
                name=name, host=end.host, port=end.port, security_protocol=end.security_protocol
            )
            for name, end in listeners.items()
        ],
        features=[
            broker.Feature(name=name, min_supported_version=least, max_supported_version=greatest)
            for name, (least, greatest) in SUPPORTED_FEATURES.items()
        ],
        rack=rack,
        log_dirs=log_dirs,
        previous_broker_epoch=previous_broker_epoch,
    )


def controller_registration(
    *, controller_id: int, incarnation_id: Uuid, listeners: Mapping[str, Endpoint]
) -> controller.ControllerRegistrationRequest:
    """A controller's registration, with every feature level that this release can run."""
    return controller.ControllerRegistrationRequest(
        controller_id=controller_id,
        incarnation_id=incarnation_id,
        zk_migration_ready=False,
        listeners=[
            controller.Listener(
                name=name, host=end.host, port=end.port, security_protocol=end.security_protocol
            )
            for name, end in listeners.items()
        ],
        features=[
            controller.Feature(
                name=name, min_supported_version=least, max_supported_version=greatest
            )
            for name, (least, greatest) in SUPPORTED_FEATURES.items()
        ],
    )
