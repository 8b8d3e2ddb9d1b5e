"""Names of client quotas, and the quotas that match a filter (KIP-546, KIP-599, KIP-612).

Source: Kafka's ClientQuotasImage.describe.
"""

from collections.abc import Mapping
from typing import Final

from barnabas.node.metadata.image import QuotaEntity
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.quotas import ComponentData, DescribeClientQuotasRequest

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"

PRODUCER_BYTE_RATE: Final = "producer_byte_rate"
CONSUMER_BYTE_RATE: Final = "consumer_byte_rate"
REQUEST_PERCENTAGE: Final = "request_percentage"
CONTROLLER_MUTATION_RATE: Final = "controller_mutation_rate"
CONNECTION_CREATION_RATE: Final = "connection_creation_rate"


EXACT: Final = 0
DEFAULT: Final = 1
SPECIFIED: Final = 2
"""Any entity, including the default: the filter names its type alone."""

Quotas = Mapping[QuotaEntity, Mapping[str, float]]


class QuotaFilterError(Exception):
    """A filter that makes no sense."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


def matching_quotas(
    quotas: Quotas, request: DescribeClientQuotasRequest
) -> list[tuple[QuotaEntity, Mapping[str, float]]]:
    """Those whose entity has all that the filter names; if strict, nothing else.

    Raises QuotaFilterError.
    """
    exact: dict[str, str | None] = {}
    specified: set[str] = set()
    for component in request.components:
        kind = component.entity_type
        _check(component, seen=kind in exact or kind in specified)
        if component.match_type == SPECIFIED:
            specified.add(kind)
        else:
            exact[kind] = component.match
    named = exact.keys() | specified
    if IP in named and len(named) > 1:
        raise QuotaFilterError(
            ErrorCode.INVALID_REQUEST,
            "Invalid entity filter component combination. IP filter component should not be used "
            "with user or clientId filter component.",
        )
    return [
        (entity, values)
        for entity, values in quotas.items()
        if _matches(dict(entity), exact, specified, is_strict=request.strict)
    ]


def _matches(
    parts: dict[str, str | None],
    exact: dict[str, str | None],
    specified: set[str],
    *,
    is_strict: bool,
) -> bool:
    return (
        (not is_strict or len(parts) == len(exact) + len(specified))
        and all(kind in parts and parts[kind] == name for kind, name in exact.items())
        and specified <= parts.keys()
    )


def _check(component: ComponentData, *, seen: bool) -> None:
    kind = component.entity_type
    if not kind:
        raise QuotaFilterError(ErrorCode.INVALID_REQUEST, "Invalid empty entity type.")
    if seen:
        raise QuotaFilterError(
            ErrorCode.INVALID_REQUEST,
            f"Entity type {kind} cannot appear more than once in the filter.",
        )
    if kind not in (IP, USER, CLIENT_ID):
        raise QuotaFilterError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
    reason = None
    if component.match_type == EXACT:
        if component.match is None:
            reason = "Request specified MATCH_TYPE_EXACT, but set match string to null."
    elif component.match_type not in (DEFAULT, SPECIFIED):
        reason = f"Unknown match type {component.match_type}"
    elif component.match is not None:
        name = "DEFAULT" if component.match_type == DEFAULT else "SPECIFIED"
        reason = f"Request specified MATCH_TYPE_{name}, but also specified a match string."
    if reason is not None:
        raise QuotaFilterError(ErrorCode.INVALID_REQUEST, reason)
