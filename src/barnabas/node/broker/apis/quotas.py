"""Quotas of clients.

DescribeClientQuotas (key 48), versions 0-1: KIP-546, 612. Answered from this node's image.
"""

from barnabas.node.broker.authorization import may
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.services import BrokerServices
from barnabas.node.metadata.quota_filter import QuotaFilterError, matching_quotas
from barnabas.protocol.acls import Operation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)


def handle_describe_client_quotas(
    services: BrokerServices, context: RequestContext, request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    """The quotas of the entities that the filter names."""
    if not may(services, context, Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER):
        return _refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, None)
    try:
        quotas = matching_quotas(services.image.client_quotas, request)
    except QuotaFilterError as error:
        return _refused(error.code, str(error))
    return DescribeClientQuotasResponse(
        error_message=None,
        entries=[
            EntryData(
                entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
                values=[ValueData(key=key, value=value) for key, value in values.items()],
            )
            for entity, values in quotas
        ],
    )


def _refused(code: ErrorCode, message: str | None) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(error_code=code, error_message=message, entries=None)
