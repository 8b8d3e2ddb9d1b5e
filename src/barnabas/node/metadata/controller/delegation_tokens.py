"""CreateDelegationToken (API 38, versions 1-3), RenewDelegationToken (39, 1-2) and
ExpireDelegationToken (40, 1-2): KIP-48, KIP-373, KIP-900.

Whether the connection may ask at all, and for whom it may ask, is checked where the request
arrives. Source: Kafka's DelegationTokenControlManager.
"""

import logging
from copy import copy
from typing import Final

from barnabas.base.ids import uuid_to_text
from barnabas.node.metadata.controller.decision import (
    RECORDS_PER_REQUEST_MAX,
    ControllerState,
    Decision,
)
from barnabas.node.metadata.delegation_tokens import (
    find_token,
    is_expired,
    token_hmac,
    token_secret,
)
from barnabas.node.metadata.ids import random_uuid
from barnabas.node.metadata.records import MetadataRecord
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.credentials import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from barnabas.protocol.messages.metadata_records import (
    DelegationTokenRecord,
    RemoveDelegationTokenRecord,
)

MAX_LIFETIME_KEY: Final = "delegation.token.max.lifetime.ms"
RENEWAL_KEY: Final = "delegation.token.expiry.time.ms"
_USER: Final = "User"
_TIMESTAMP_MAX: Final = 2**63 - 1

telemetry = logging.getLogger(__name__)


def create_delegation_token(
    state: ControllerState, request: CreateDelegationTokenRequest
) -> Decision[CreateDelegationTokenResponse]:
    """Issue a token to the requester, or to whom the request names as owner."""
    requester_type, _, requester_name = state.requester.partition(":")
    response = CreateDelegationTokenResponse(
        principal_type=requester_type,
        principal_name=requester_name,
        token_requester_principal_type=requester_type,
        token_requester_principal_name=requester_name,
    )
    if request.owner_principal_name:
        response.principal_type = request.owner_principal_type or ""
        response.principal_name = request.owner_principal_name
    usable = _usable_secret(state)
    if isinstance(usable, ErrorCode):
        response.error_code = usable
        return Decision(response)
    if any(renewer.principal_type != _USER for renewer in request.renewers):
        response.error_code = ErrorCode.INVALID_PRINCIPAL_TYPE
        return Decision(response)
    now_ms = state.now_ms
    lifetime_ms = state.config.get_int(MAX_LIFETIME_KEY)
    if request.max_lifetime_ms > 0:
        lifetime_ms = min(lifetime_ms, request.max_lifetime_ms)
    token = DelegationTokenRecord(
        owner=f"{response.principal_type}:{response.principal_name}",
        requester=state.requester,
        renewers=[f"{entry.principal_type}:{entry.principal_name}" for entry in request.renewers],
        issue_timestamp=now_ms,
        max_timestamp=_sum(now_ms, lifetime_ms),
        token_id=uuid_to_text(random_uuid(state.random)),
    )
    token.expiration_timestamp = min(
        token.max_timestamp, _sum(now_ms, state.config.get_int(RENEWAL_KEY))
    )
    response.issue_timestamp_ms = now_ms
    response.max_timestamp_ms = token.max_timestamp
    response.expiry_timestamp_ms = token.expiration_timestamp
    response.token_id = token.token_id
    response.hmac = token_hmac(usable, token.token_id)
    return Decision(response, [MetadataRecord(token)])


def renew_delegation_token(
    state: ControllerState, request: RenewDelegationTokenRequest
) -> Decision[RenewDelegationTokenResponse]:
    """Put a token's expiry off, as far as its longest life allows."""
    token = _token(state, request.hmac)
    if isinstance(token, ErrorCode):
        return Decision(RenewDelegationTokenResponse(error_code=token))
    if is_expired(token, state.now_ms):
        return Decision(RenewDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_EXPIRED))
    if not _may_renew(state, token):
        return Decision(
            RenewDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
        )
    period_ms = state.config.get_int(RENEWAL_KEY)
    if request.renew_period_ms > 0:
        period_ms = min(period_ms, request.renew_period_ms)
    record = _expiring(token, _sum(state.now_ms, period_ms))
    return Decision(
        RenewDelegationTokenResponse(expiry_timestamp_ms=record.expiration_timestamp),
        [MetadataRecord(record)],
    )


def expire_delegation_token(
    state: ControllerState, request: ExpireDelegationTokenRequest
) -> Decision[ExpireDelegationTokenResponse]:
    """Set a token's expiry, or end it at once where the period is negative."""
    token = _token(state, request.hmac)
    if isinstance(token, ErrorCode):
        return Decision(ExpireDelegationTokenResponse(error_code=token))
    if not _may_renew(state, token):
        return Decision(
            ExpireDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
        )
    if request.expiry_time_period_ms < 0:
        return Decision(
            ExpireDelegationTokenResponse(expiry_timestamp_ms=state.now_ms),
            [MetadataRecord(RemoveDelegationTokenRecord(token_id=token.token_id))],
        )
    if is_expired(token, state.now_ms):
        return Decision(
            ExpireDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_EXPIRED)
        )
    record = _expiring(token, _sum(state.now_ms, request.expiry_time_period_ms))
    return Decision(
        ExpireDelegationTokenResponse(expiry_timestamp_ms=record.expiration_timestamp),
        [MetadataRecord(record)],
    )


def remove_expired_tokens(state: ControllerState) -> Decision[bool] | None:
    """Forget the tokens that have expired; some remain if there are very many."""
    if isinstance(_usable_secret(state), ErrorCode):
        return None
    expired = [
        token for token in state.image.delegation_tokens.values() if is_expired(token, state.now_ms)
    ]
    if not expired:
        return None
    for token in expired[:RECORDS_PER_REQUEST_MAX]:
        telemetry.info("the delegation token %s of %s has expired", token.token_id, token.owner)
    return Decision(
        len(expired) > RECORDS_PER_REQUEST_MAX,
        [
            MetadataRecord(RemoveDelegationTokenRecord(token_id=token.token_id))
            for token in expired[:RECORDS_PER_REQUEST_MAX]
        ],
    )


def _usable_secret(state: ControllerState) -> str | ErrorCode:
    secret = token_secret(state.config)
    if secret is None:
        return ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    if not state.image.metadata_version.has_delegation_tokens:
        return ErrorCode.UNSUPPORTED_VERSION
    return secret


def _token(state: ControllerState, shown: bytes) -> DelegationTokenRecord | ErrorCode:
    secret = _usable_secret(state)
    if isinstance(secret, ErrorCode):
        return secret
    return find_token(state.image, secret, shown) or ErrorCode.DELEGATION_TOKEN_NOT_FOUND


def _may_renew(state: ControllerState, token: DelegationTokenRecord) -> bool:
    return state.requester == token.owner or state.requester in token.renewers


def _expiring(token: DelegationTokenRecord, expiry_ms: int) -> DelegationTokenRecord:
    record = copy(token)
    record.expiration_timestamp = min(token.max_timestamp, expiry_ms)
    return record


def _sum(now_ms: int, duration_ms: int) -> int:
    return min(now_ms + duration_ms, _TIMESTAMP_MAX)
