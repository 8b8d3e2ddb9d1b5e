"""Rights required by the APIs of ACLs, users, tokens and quotas."""

from __future__ import annotations

from barnabas.protocol import apis
from barnabas.protocol.acls import WILDCARD, Operation, PatternType, Permission, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import acls, credentials, quotas
from barnabas.protocol.schema import Message
from support.required_rights.needs import Case, cluster
from support.required_rights.rights_world import World

SCRAM_SHA_256 = 1
EXACT = 0
NO_TOKENS_HERE = frozenset(
    {
        ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
        ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED,
        ErrorCode.DELEGATION_TOKEN_NOT_FOUND,
    }
)
"""To somebody who has not logged in, or where no secret key is set."""


def _creation(world: World) -> acls.CreateAclsRequest:
    made = acls.AclCreation(
        resource_type=ResourceType.TOPIC,
        resource_name=world.topic,
        resource_pattern_type=PatternType.LITERAL,
        principal="User:somebody",
        host=WILDCARD,
        operation=Operation.READ,
        permission_type=Permission.ALLOW,
    )
    return acls.CreateAclsRequest(creations=[made])


def _create_acls(world: World) -> Message:
    return _creation(world)


def _describe_acls(world: World) -> Message:
    world.call(_creation(world))
    return acls.DescribeAclsRequest(
        resource_type_filter=ResourceType.ANY,
        resource_name_filter=None,
        pattern_type_filter=PatternType.ANY,
        principal_filter=None,
        host_filter=None,
        operation=Operation.ANY,
        permission_type=Permission.ANY,
    )


def _delete_acls(world: World) -> Message:
    world.call(_creation(world))
    doomed = acls.DeleteAclsFilter(
        resource_type_filter=ResourceType.TOPIC,
        resource_name_filter=world.topic,
        pattern_type_filter=PatternType.LITERAL,
        principal_filter="User:somebody",
        host_filter=None,
        operation=Operation.ANY,
        permission_type=Permission.ANY,
    )
    return acls.DeleteAclsRequest(filters=[doomed])


def _user(world: World) -> str:
    return f"user-of-{world.group}"


def _upsertion(world: World) -> credentials.AlterUserScramCredentialsRequest:
    made = credentials.ScramCredentialUpsertion(
        name=_user(world),
        mechanism=SCRAM_SHA_256,
        iterations=4096,
        salt=b"a-salt-of-the-user",
        salted_password=bytes(32),
    )
    return credentials.AlterUserScramCredentialsRequest(upsertions=[made])


def _alter_scram(world: World) -> Message:
    return _upsertion(world)


def _describe_scram(world: World) -> Message:
    made = world.call(_upsertion(world))
    assert not made.results[0].error_code, made.results[0].error_message
    return credentials.DescribeUserScramCredentialsRequest(users=[])


def _limit(world: World) -> Message:
    named = quotas.EntityData(entity_type="user", entity_name=_user(world))
    limited = quotas.AlterClientQuotasRequestEntryData(
        entity=[named],
        ops=[quotas.OpData(key="producer_byte_rate", value=1e6)],
    )
    return quotas.AlterClientQuotasRequest(entries=[limited])


def _describe_quotas(world: World) -> Message:
    made = world.call(_limit(world))
    assert not made.entries[0].error_code, made.entries[0].error_message
    return quotas.DescribeClientQuotasRequest()


def _create_token(world: World) -> Message:
    return credentials.CreateDelegationTokenRequest(
        owner_principal_type=None, owner_principal_name=None, max_lifetime_ms=-1
    )


def _describe_tokens(world: World) -> Message:
    return credentials.DescribeDelegationTokenRequest(owners=None)


def _renew_token(world: World) -> Message:
    return credentials.RenewDelegationTokenRequest(hmac=b"hmac", renew_period_ms=-1)


def _expire_token(world: World) -> Message:
    return credentials.ExpireDelegationTokenRequest(hmac=b"hmac", expiry_time_period_ms=-1)


_ALTER = cluster(Operation.ALTER)
_DESCRIBE = cluster(Operation.DESCRIBE)

CASES = (
    Case(apis.DESCRIBE_ACLS, "", [_DESCRIBE], _describe_acls),
    Case(apis.CREATE_ACLS, "", [_ALTER], _create_acls),
    Case(apis.DELETE_ACLS, "", [_ALTER], _delete_acls),
    Case(apis.DESCRIBE_CLIENT_QUOTAS, "", [cluster(Operation.DESCRIBE_CONFIGS)], _describe_quotas),
    Case(apis.ALTER_CLIENT_QUOTAS, "", [cluster(Operation.ALTER_CONFIGS)], _limit),
    Case(apis.DESCRIBE_USER_SCRAM_CREDENTIALS, "", [_DESCRIBE], _describe_scram),
    Case(apis.ALTER_USER_SCRAM_CREDENTIALS, "", [_ALTER], _alter_scram),
    # Of one's own tokens one may do all.
    Case(apis.CREATE_DELEGATION_TOKEN, "", [], _create_token, succeeds_with=NO_TOKENS_HERE),
    Case(apis.RENEW_DELEGATION_TOKEN, "", [], _renew_token, succeeds_with=NO_TOKENS_HERE),
    Case(apis.EXPIRE_DELEGATION_TOKEN, "", [], _expire_token, succeeds_with=NO_TOKENS_HERE),
    Case(apis.DESCRIBE_DELEGATION_TOKEN, "", [], _describe_tokens, succeeds_with=NO_TOKENS_HERE),
)
