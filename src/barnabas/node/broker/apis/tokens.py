"""Delegation tokens.

CreateDelegationToken (key 38), versions 1-3: KIP-48, 373. Decided by the controller.

RenewDelegationToken (key 39), versions 1-2: KIP-48. Decided by the controller.

ExpireDelegationToken (key 40), versions 1-2: KIP-48. Decided by the controller.

DescribeDelegationToken (key 41), versions 1-3: KIP-48, 373. Answered from this node's image.

One sees the tokens that one owns or may renew, and those that one may DESCRIBE, or whose owner
one may DESCRIBE_TOKENS of. They come with their secrets. Source: Kafka's DelegationTokenManager.
"""

from typing import Any, Final

from barnabas.node.broker.authorization import may
from barnabas.node.broker.client_state import client_state
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.controller.requests import ask_controller
from barnabas.node.broker.controller.versions import REQUESTER_FROM, fit
from barnabas.node.broker.services import BrokerServices
from barnabas.node.metadata.delegation_tokens import token_hmac, token_secret
from barnabas.node.security.principal import ANONYMOUS, USER, Principal
from barnabas.protocol.acls import Operation, ResourceType
from barnabas.protocol.apis import API_OF
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.credentials import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
)
from barnabas.protocol.messages.metadata_records import DelegationTokenRecord

ERROR_TIMESTAMP_MS: Final = -1
"""In place of every time, as in Kafka, where a request is refused before it is decided."""


def may_ask_for_tokens(context: RequestContext) -> bool:
    """Return whether a connection is one over which tokens are handed out.

    Not where anybody could listen in on PLAINTEXT or come as nobody, and not to who logged in by a
    token: then a stolen one would live as long as it is renewed. Source: Kafka's KafkaApis.
    """
    protocol = context.connection.listener.security_protocol
    if protocol == "PLAINTEXT" or client_state(context.connection).is_token:
        return False
    return protocol != "SSL" or context.principal != ANONYMOUS


async def handle_create_delegation_token(
    services: BrokerServices, context: RequestContext, request: CreateDelegationTokenRequest
) -> CreateDelegationTokenResponse:
    """Issue a token, to the sender or to another owner."""
    requester = context.principal
    owner = requester
    if request.owner_principal_name:
        owner = Principal(request.owner_principal_type or "", request.owner_principal_name)
    code = ErrorCode.NONE
    if not may_ask_for_tokens(context):
        code = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    elif owner != requester and not may(
        services, context, Operation.CREATE_TOKENS, ResourceType.USER, str(owner)
    ):
        code = ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    elif any(renewer.principal_type != USER for renewer in request.renewers):
        code = ErrorCode.INVALID_PRINCIPAL_TYPE
    if code is not ErrorCode.NONE:
        refusal = CreateDelegationTokenResponse(
            error_code=code,
            principal_type=owner.kind,
            principal_name=owner.name,
            token_requester_principal_type=requester.kind,
            token_requester_principal_name=requester.name,
            issue_timestamp_ms=ERROR_TIMESTAMP_MS,
            expiry_timestamp_ms=ERROR_TIMESTAMP_MS,
            max_timestamp_ms=ERROR_TIMESTAMP_MS,
        )
        return fit(refusal, context.api_version)
    response: CreateDelegationTokenResponse = await ask_controller(services, context, request)
    return response


async def handle_token_expiry(
    services: BrokerServices,
    context: RequestContext,
    request: RenewDelegationTokenRequest | ExpireDelegationTokenRequest,
) -> Any:
    """Put a token's expiry off, or set when it expires."""
    if not may_ask_for_tokens(context):
        return API_OF[type(request)].response(
            error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
            expiry_timestamp_ms=ERROR_TIMESTAMP_MS,
        )
    return await ask_controller(services, context, request)


def handle_describe_delegation_token(
    services: BrokerServices, context: RequestContext, request: DescribeDelegationTokenRequest
) -> DescribeDelegationTokenResponse:
    """The tokens of some owners, or of all; an empty list of owners asks for none."""
    if not may_ask_for_tokens(context):
        return DescribeDelegationTokenResponse(
            error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        )
    secret = token_secret(services.config)
    if secret is None:
        return DescribeDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    owners = (
        None
        if request.owners is None
        else {f"{owner.principal_type}:{owner.principal_name}" for owner in request.owners}
    )
    tokens = [
        _described(token, secret, has_requester=context.api_version >= REQUESTER_FROM)
        for token in services.image.delegation_tokens.values()
        if (owners is None or _is_of(token, owners)) and _may_see(services, context, token)
    ]
    return DescribeDelegationTokenResponse(tokens=tokens)


def _is_of(token: DelegationTokenRecord, principals: set[str]) -> bool:
    return token.owner in principals or not principals.isdisjoint(token.renewers)


def _may_see(
    services: BrokerServices, context: RequestContext, token: DelegationTokenRecord
) -> bool:
    return (
        _is_of(token, {str(context.principal)})
        or may(services, context, Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id)
        or may(services, context, Operation.DESCRIBE_TOKENS, ResourceType.USER, token.owner)
    )


def _described(
    token: DelegationTokenRecord, secret: str, *, has_requester: bool
) -> DescribedDelegationToken:
    owner_type, _, owner_name = token.owner.partition(":")
    requester = token.requester if has_requester else ""
    requester_type, _, requester_name = requester.partition(":")
    renewers = (renewer.partition(":") for renewer in token.renewers)
    return DescribedDelegationToken(
        principal_type=owner_type,
        principal_name=owner_name,
        token_requester_principal_type=requester_type,
        token_requester_principal_name=requester_name,
        issue_timestamp=token.issue_timestamp,
        expiry_timestamp=token.expiration_timestamp,
        max_timestamp=token.max_timestamp,
        token_id=token.token_id,
        hmac=token_hmac(secret, token.token_id),
        renewers=[
            DescribedDelegationTokenRenewer(principal_type=kind, principal_name=name)
            for kind, _, name in renewers
        ],
    )
