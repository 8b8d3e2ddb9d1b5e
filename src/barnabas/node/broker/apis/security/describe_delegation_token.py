"""DescribeDelegationToken (key 41), versions 1-3: KIP-48, 373. Answered from this node's image.

One sees the tokens that one owns or may renew, and those that one may DESCRIBE, or whose owner
one may DESCRIBE_TOKENS of. They come with their secrets. Source: Kafka's DelegationTokenManager.
"""

from barnabas.node.broker.apis.security.token_requests import may_ask_for_tokens
from barnabas.node.broker.authorization import may
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.controller.versions import REQUESTER_FROM
from barnabas.node.broker.services import BrokerServices
from barnabas.node.metadata.delegation_tokens import token_hmac, token_secret
from barnabas.protocol.acls import Operation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.credentials import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from barnabas.protocol.messages.metadata_records import DelegationTokenRecord


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
