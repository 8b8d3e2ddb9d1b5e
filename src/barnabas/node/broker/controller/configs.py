"""AlterConfigs (key 33) and IncrementalAlterConfigs (44), asked of the controller itself (KIP-919).

It decides them as it does those that brokers pass on, but for `cordoned.log.dirs`: which
directories a broker has only that broker knows, so nothing can be added to it here (KIP-1066).
"""

from typing import TypeVar

from barnabas.node.broker.apis.config_resources import check_cordoned_by_controller
from barnabas.node.metadata.image import MetadataImage
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import configs
from barnabas.protocol.schema import Struct

Request = TypeVar("Request", configs.AlterConfigsRequest, configs.IncrementalAlterConfigsRequest)
Answer = TypeVar("Answer", bound=Struct)


def without_refused(
    image: MetadataImage, request: Request, answer_class: type[Answer]
) -> tuple[Request, list[Answer]]:
    """The request without what a controller may not change, and answers for the resources left out.

    `answer_class` is the response's struct for one resource.
    """
    refused: dict[tuple[int, str], Answer] = {}
    for resource in request.resources:
        reason = check_cordoned_by_controller(image, resource)
        if reason is not None:
            key = (resource.resource_type, resource.resource_name)
            refused[key] = answer_class(
                error_code=ErrorCode.INVALID_CONFIG,
                error_message=reason,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
    if not refused:
        return request, []
    left = type(request)(validate_only=request.validate_only)
    left.resources = [
        resource
        for resource in request.resources
        if (resource.resource_type, resource.resource_name) not in refused
    ]
    return left, list(refused.values())
