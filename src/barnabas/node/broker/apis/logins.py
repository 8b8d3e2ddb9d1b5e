"""Logins: SASL, and the credentials of SCRAM.

SaslHandshake (key 17), versions 0-1: KIP-43, 152.

Before a login it is answered by the listener's gate (`broker.login`). Here it comes at the wrong
time, as in Kafka: after a login that does not expire, or without one.

SaslAuthenticate (key 36), versions 0-2: KIP-152, 368.

Before a login it is answered by the listener's gate (`broker.login`). Here it comes at the wrong
time, as in Kafka.

DescribeUserScramCredentials (key 50), version 0: KIP-554. Answered from this node's image.

Mechanisms and counts of iterations are told, and nothing of what is stored. Source: Kafka's
ScramImage.
"""

from collections import Counter

from barnabas.node.broker.authorization import may
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.services import BrokerServices
from barnabas.node.metadata.image import MetadataImage
from barnabas.protocol.acls import Operation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)


def handle_sasl_handshake(
    services: object, context: RequestContext, request: SaslHandshakeRequest
) -> SaslHandshakeResponse:
    """Refuse to choose a mechanism."""
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)


MESSAGE = "SaslAuthenticate request received after successful authentication"
"""Kafka's, word for word."""


def handle_sasl_authenticate(
    services: object, context: RequestContext, request: SaslAuthenticateRequest
) -> SaslAuthenticateResponse:
    """Refuse a step of an exchange that was never begun."""
    return SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=MESSAGE)


_TWICE = "Cannot describe SCRAM credentials for the same user twice in a single request: "
_UNKNOWN = "Attempt to describe a user credential that does not exist: "


def handle_describe_user_scram_credentials(
    services: BrokerServices, context: RequestContext, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    """List the mechanisms of users; of all users if none is named."""
    if not may(services, context, Operation.DESCRIBE, ResourceType.CLUSTER):
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return DescribeUserScramCredentialsResponse(error_code=code, error_message=None)
    asked = Counter(user.name for user in request.users or [])
    if not asked:
        asked = Counter({user: 1 for _, user in services.image.scram})
    image = services.image
    mechanisms = sorted({mechanism for mechanism, _ in image.scram})
    return DescribeUserScramCredentialsResponse(
        error_message=None,
        results=[_described(image, mechanisms, name, count) for name, count in asked.items()],
    )


def _described(
    image: MetadataImage, mechanisms: list[int], name: str, count: int
) -> DescribeUserScramCredentialsResult:
    if count > 1:
        return DescribeUserScramCredentialsResult(
            user=name, error_code=ErrorCode.DUPLICATE_RESOURCE, error_message=_TWICE + name
        )
    infos = [
        CredentialInfo(mechanism=mechanism, iterations=image.scram[mechanism, name].iterations)
        for mechanism in mechanisms
        if (mechanism, name) in image.scram
    ]
    if not infos:
        return DescribeUserScramCredentialsResult(
            user=name, error_code=ErrorCode.RESOURCE_NOT_FOUND, error_message=_UNKNOWN + name
        )
    return DescribeUserScramCredentialsResult(user=name, error_message=None, credential_infos=infos)
