"""Whole clusters under faults with another number of fetchers for each leader, which changes.

No other run has more than one, so that none of them takes another course.
"""

import asyncio
from dataclasses import replace
from functools import partial
from random import Random

import pytest

from barnabas.node.metadata.image import ConfigResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from sim.clients import Client
from sim.plan import Plan, draw_plan
from sim.simulation import Simulation, run_simulation
from support.effort import examples

FETCHERS_MAX = 6
SET = 0


def several_fetchers(seed: int) -> Plan:
    """The plan of a seed with more partitions, several fetchers and perhaps abrupt endings."""
    plan, random = draw_plan(seed), Random(f"{seed}/fetchers")
    return replace(
        plan,
        topics=[replace(topic, partitions=random.randint(4, 9)) for topic in plan.topics],
        properties={
            **plan.properties,
            "num.replica.fetchers": str(random.randint(1, 4)),
            "controlled.shutdown.enable": random.choice(("true", "false")),
        },
    )


class ResizingSimulation(Simulation):
    """Somebody changes the number all the time, as far as it may go in one step."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self.resized = 0
        self.refused = 0

    def _start_clients(self) -> list["asyncio.Task[None]"]:
        admin = self._client("resizing-admin")
        return [*super()._start_clients(), admin.start(partial(self._resize, admin))]

    async def _resize(self, admin: Client) -> None:
        while not admin.is_stopping:
            await admin.pause(0.2, 1.5)
            await admin.refresh([])
            value = str(admin.random.randint(1, FETCHERS_MAX))
            request = IncrementalAlterConfigsRequest(
                resources=[
                    AlterConfigsResource(
                        resource_type=ConfigResourceType.BROKER,
                        resource_name="",
                        configs=[
                            AlterableConfig(
                                name="num.replica.fetchers", config_operation=SET, value=value
                            )
                        ],
                    )
                ]
            )
            try:
                response = await admin.ask_any(request)
            except OSError:
                continue
            code = ErrorCode.of(response.responses[0].error_code)
            self.resized += code is ErrorCode.NONE
            self.refused += code is ErrorCode.INVALID_REQUEST

    def _sample(self) -> None:
        super()._sample()
        for machine in self.machines:
            replicas = machine.replicas
            if not machine.is_serving or replicas is None:
                continue
            fetched = [
                key for fetcher in replicas.fetchers._fetchers.values() for key in fetcher._followed
            ]
            if len(set(fetched)) != len(fetched):
                self.history.saw("fetched-twice", f"{self.loop.time():.3f} s {machine}")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(1, 1 + examples(2)))
def test_clusters_come_to_a_good_end_however_many_fetchers_there_are(seed: int) -> None:
    simulation = ResizingSimulation(several_fetchers(seed))
    outcome = run_simulation(simulation)
    assert outcome.is_good, str(outcome)
    assert simulation.resized > 0
