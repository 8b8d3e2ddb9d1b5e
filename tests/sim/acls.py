"""Simulated clusters that look at ACLs, which change all the time while clients work.

In the end each node must decide by the ACLs that its metadata holds.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

from barnabas.node.net.login import ScramLogin
from barnabas.protocol.acls import WILDCARD, Operation, PatternType, Permission, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.acls import (
    AclCreation,
    CreateAclsRequest,
    DeleteAclsFilter,
    DeleteAclsRequest,
)
from barnabas.protocol.schema import Message
from sim.clients import Client
from sim.logins import LoginSimulation, nonce
from sim.plan import Plan

AUTHORIZED = {"authorizer.class.name": "StandardAuthorizer", "super.users": "User:node"}
CHANGE_EVERY_S = 0.3
CLIENT = "User:client"
RIGHTS = [
    AclCreation(
        resource_type=ResourceType.TOPIC,
        resource_name=WILDCARD,
        resource_pattern_type=PatternType.LITERAL,
        principal=CLIENT,
        host=WILDCARD,
        operation=operation,
        permission_type=Permission.ALLOW,
    )
    for operation in (Operation.READ, Operation.WRITE)
]
FOREIGN = AclCreation(
    resource_type=ResourceType.TOPIC,
    resource_name="another-",
    resource_pattern_type=PatternType.PREFIXED,
    principal=CLIENT,
    host=WILDCARD,
    operation=Operation.ALL,
    permission_type=Permission.DENY,
)
"""Comes and goes: no decision changes, but nothing that was decided may be kept."""


class AclSimulation(LoginSimulation):
    """Plain producers and consumers with just the rights that they need."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(replace(plan, properties={**plan.properties, **AUTHORIZED}))
        self._changing: asyncio.Task[None] | None = None

    async def _create_topics(self) -> bool:
        if not await super()._create_topics():
            return False
        admin = self._client("acls-admin")
        if not await self._in(admin, _done(admin, CreateAclsRequest(creations=RIGHTS))):
            return False
        self._changing = self.loop.create_task(self._in(admin, _change_for_ever(admin)))
        return True

    async def _converge(self) -> None:
        await super()._converge()
        if self._changing is not None:
            self._changing.cancel()
        for machine in self.machines:
            node: Any = machine.node
            if machine.is_wanted and node is not None:
                kept, known = node._authorization.authorizer._acls, node.metadata.image.acls
                if kept._by_id != known:
                    self.history.saw("acls-differ", f"{machine.name} decides by other ACLs")

    def _client(self, name: str) -> Client:
        client = super()._client(name)
        if name.endswith("admin"):
            draw = partial(nonce, Random(f"{self.plan.seed}/{name}/nonces"))
            client.login = ScramLogin("SCRAM-SHA-256", "node", "node-secret", draw)
        return client


async def _change_for_ever(client: Client) -> None:
    remove = DeleteAclsFilter(
        resource_type_filter=FOREIGN.resource_type,
        resource_name_filter=FOREIGN.resource_name,
        pattern_type_filter=FOREIGN.resource_pattern_type,
        principal_filter=FOREIGN.principal,
        host_filter=FOREIGN.host,
        operation=FOREIGN.operation,
        permission_type=FOREIGN.permission_type,
    )
    while True:
        await _done(client, CreateAclsRequest(creations=[FOREIGN]))
        await asyncio.sleep(CHANGE_EVERY_S)
        await _done(client, DeleteAclsRequest(filters=[remove]))
        await asyncio.sleep(CHANGE_EVERY_S)


async def _done(client: Client, request: Message) -> bool:
    """Ask until it is answered without an error. Both requests may be made twice."""
    while True:
        try:
            answer = await client.ask_any(request)
        except OSError:
            await client.back_off()
            continue
        results = getattr(answer, "results", None) or getattr(answer, "filter_results", [])
        if all(result.error_code == ErrorCode.NONE for result in results):
            return True
        await client.back_off()
