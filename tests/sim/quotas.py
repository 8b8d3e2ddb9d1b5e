"""Simulated clusters whose clients have quotas that they are always above."""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    EntityData,
    OpData,
)
from sim.clients import Client
from sim.simulation import Simulation

LIMITS = {"producer_byte_rate": 1500.0, "consumer_byte_rate": 8000.0}


class QuotaSimulation(Simulation):
    """Plain producers and consumers, who have to wait again and again."""

    async def _create_topics(self) -> bool:
        if not await super()._create_topics():
            return False
        entry = AlterClientQuotasRequestEntryData(
            entity=[EntityData(entity_type="user", entity_name=None)],
            ops=[OpData(key=key, value=value) for key, value in LIMITS.items()],
        )
        client = self._client("administrator")
        return await self._in(client, _limit(client, AlterClientQuotasRequest(entries=[entry])))


async def _limit(client: Client, request: AlterClientQuotasRequest) -> bool:
    while True:
        try:
            (answer,) = (await client.ask_any(request)).entries
            if answer.error_code == ErrorCode.NONE:
                return True
        except OSError:
            pass
        await client.back_off()
