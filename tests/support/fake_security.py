"""A cluster in memory that answers the requests of `barnabas acl`, `user`, `quota` and `token`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from barnabas.protocol.acls import Operation, PatternType, Permission, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import acls, credentials, quotas

Response = Any
AclKey = tuple[int, str, int, str, str, int, int]


class FakeCluster:
    """The cluster's data."""

    def __init__(self) -> None:
        self.acls: set[AclKey] = set()
        self.users: dict[str, dict[int, credentials.ScramCredentialUpsertion]] = {}
        self.quotas: dict[tuple[tuple[str, str | None], ...], dict[str, float]] = {}
        self.tokens: dict[bytes, Any] = {}
        self.requests: list[Any] = []
        self.refusal: int = ErrorCode.NONE

    def answer(self, request: Any) -> Response:
        self.requests.append(request)
        handlers: dict[type, Callable[[Any], Response]] = {
            acls.DescribeAclsRequest: self._describe_acls,
            acls.CreateAclsRequest: self._create_acls,
            acls.DeleteAclsRequest: self._delete_acls,
            credentials.DescribeUserScramCredentialsRequest: self._users,
            credentials.AlterUserScramCredentialsRequest: self._alter_users,
            quotas.DescribeClientQuotasRequest: self._quotas,
            quotas.AlterClientQuotasRequest: self._alter_quotas,
            credentials.CreateDelegationTokenRequest: self._create_token,
            credentials.DescribeDelegationTokenRequest: self._tokens,
            credentials.RenewDelegationTokenRequest: self._renew,
            credentials.ExpireDelegationTokenRequest: self._expire,
        }
        return handlers[type(request)](request)

    # -- ACLs

    def _describe_acls(self, request: Any) -> Response:
        resources = [
            acls.DescribeAclsResource(
                resource_type=acl[0],
                resource_name=acl[1],
                pattern_type=acl[2],
                acls=[
                    acls.AclDescription(
                        principal=acl[3], host=acl[4], operation=acl[5], permission_type=acl[6]
                    )
                ],
            )
            for acl in self.acls
            if _passes(acl, request)
        ]
        return acls.DescribeAclsResponse(error_code=self.refusal, resources=resources)

    def _create_acls(self, request: Any) -> Response:
        for item in request.creations:
            if self.refusal == ErrorCode.NONE:
                self.acls.add(
                    (
                        item.resource_type,
                        item.resource_name,
                        item.resource_pattern_type,
                        item.principal,
                        item.host,
                        item.operation,
                        item.permission_type,
                    )
                )
        results = [acls.AclCreationResult(error_code=self.refusal) for _ in request.creations]
        return acls.CreateAclsResponse(results=results)

    def _delete_acls(self, request: Any) -> Response:
        results = []
        for item in request.filters:
            matching = [acl for acl in self.acls if _passes(acl, item)]
            self.acls -= set(matching)
            results.append(
                acls.DeleteAclsFilterResult(
                    matching_acls=[acls.DeleteAclsMatchingAcl() for _ in matching]
                )
            )
        return acls.DeleteAclsResponse(filter_results=results)

    # -- users

    def _users(self, request: Any) -> Response:
        names = [user.name for user in request.users] if request.users else list(self.users)
        results = [
            credentials.DescribeUserScramCredentialsResult(
                user=name,
                error_code=ErrorCode.NONE if name in self.users else ErrorCode.RESOURCE_NOT_FOUND,
                credential_infos=[
                    credentials.CredentialInfo(mechanism=number, iterations=item.iterations)
                    for number, item in self.users.get(name, {}).items()
                ],
            )
            for name in names
        ]
        return credentials.DescribeUserScramCredentialsResponse(results=results)

    def _alter_users(self, request: Any) -> Response:
        for item in request.upsertions:
            self.users.setdefault(item.name, {})[item.mechanism] = item
        for item in request.deletions:
            self.users[item.name].pop(item.mechanism)
            if not self.users[item.name]:
                del self.users[item.name]
        listed = [item.name for item in [*request.upsertions, *request.deletions]]
        names = set(listed)
        assert len(names) == len(listed), "a broker refuses to alter a user twice in a request"
        return credentials.AlterUserScramCredentialsResponse(
            results=[credentials.AlterUserScramCredentialsResult(user=name) for name in names]
        )

    # -- quotas

    def _quotas(self, request: Any) -> Response:
        wanted = {(part.entity_type, part.match) for part in request.components}
        entries = [
            quotas.EntryData(
                entity=[quotas.EntityData(entity_type=k, entity_name=n) for k, n in entity],
                values=[quotas.ValueData(key=k, value=v) for k, v in values.items()],
            )
            for entity, values in self.quotas.items()
            if wanted <= set(entity) and (not request.strict or len(entity) == len(wanted))
        ]
        return quotas.DescribeClientQuotasResponse(entries=entries)

    def _alter_quotas(self, request: Any) -> Response:
        for entry in request.entries:
            key = tuple((part.entity_type, part.entity_name) for part in entry.entity)
            values = self.quotas.setdefault(key, {})
            for op in entry.ops:
                if op.remove:
                    del values[op.key]
                else:
                    values[op.key] = op.value
            if not values:
                del self.quotas[key]
        entries = [quotas.AlterClientQuotasResponseEntryData() for _ in request.entries]
        return quotas.AlterClientQuotasResponse(entries=entries)

    # -- tokens

    def _create_token(self, request: Any) -> Response:
        made = credentials.CreateDelegationTokenResponse(
            principal_type=request.owner_principal_type or "User",
            principal_name=request.owner_principal_name or "admin",
            expiry_timestamp_ms=1_000,
            max_timestamp_ms=request.max_lifetime_ms,
            token_id="token-1",
            hmac=b"secret!",
        )
        self.tokens[made.hmac] = made
        return made

    def _tokens(self, request: Any) -> Response:
        found = [
            credentials.DescribedDelegationToken(
                principal_type=item.principal_type,
                principal_name=item.principal_name,
                token_id=item.token_id,
                expiry_timestamp=item.expiry_timestamp_ms,
                hmac=item.hmac,
            )
            for item in self.tokens.values()
        ]
        return credentials.DescribeDelegationTokenResponse(tokens=found)

    def _renew(self, request: Any) -> Response:
        if request.hmac not in self.tokens:
            code = ErrorCode.DELEGATION_TOKEN_NOT_FOUND
            return credentials.RenewDelegationTokenResponse(error_code=code)
        return credentials.RenewDelegationTokenResponse(expiry_timestamp_ms=request.renew_period_ms)

    def _expire(self, request: Any) -> Response:
        self.tokens.pop(request.hmac)
        return credentials.ExpireDelegationTokenResponse(expiry_timestamp_ms=5_000)


def _passes(acl: AclKey, wanted: Any) -> bool:
    kind, name, pattern, principal, host, operation, permission = acl
    names = wanted.resource_name_filter
    if names is not None:
        is_same = names == name
        if wanted.pattern_type_filter == PatternType.MATCH:
            is_same = is_same or name == "*"
            is_same = is_same or (pattern == PatternType.PREFIXED and names.startswith(name))
        if not is_same:
            return False
    loose = (PatternType.ANY, PatternType.MATCH)
    return (
        wanted.resource_type_filter in (ResourceType.ANY, kind)
        and wanted.pattern_type_filter in (*loose, pattern)
        and wanted.principal_filter in (None, principal)
        and wanted.host_filter in (None, host)
        and wanted.operation in (Operation.ANY, operation)
        and wanted.permission_type in (Permission.ANY, permission)
    )
