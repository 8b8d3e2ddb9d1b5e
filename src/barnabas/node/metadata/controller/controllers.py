"""ControllerRegistration (API 70, version 0; KIP-919): which controllers there are."""

from barnabas.node.metadata.controller.decision import ControllerState, Decision
from barnabas.node.metadata.image import ControllerImage, Endpoint
from barnabas.node.metadata.snapshot import register_controller_record
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.nodes import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)


def register_controller(
    state: ControllerState, request: ControllerRegistrationRequest
) -> Decision[ControllerRegistrationResponse]:
    """Register a controller, or a new incarnation of one."""
    if not state.image.metadata_version.has_controller_registration:
        return Decision(
            ControllerRegistrationResponse(
                error_code=ErrorCode.UNSUPPORTED_VERSION,
                error_message="The current metadata.version is too old to support controller "
                "registrations.",
            )
        )
    controller = ControllerImage(
        id=request.controller_id,
        incarnation_id=request.incarnation_id,
        listeners={
            end.name: Endpoint(end.host, end.port, end.security_protocol)
            for end in request.listeners
        },
        features={
            feature.name: (feature.min_supported_version, feature.max_supported_version)
            for feature in request.features
        },
    )
    return Decision(
        ControllerRegistrationResponse(error_message=None), [register_controller_record(controller)]
    )
