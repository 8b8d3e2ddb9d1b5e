"""Periodic decisions of the active controller.

Left out of Kafka's list: fencing of silent brokers, which is due when a session ends
(sessions.py), and NoOpRecords while idle.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from barnabas.node.config.node_config import NodeConfig
from barnabas.node.metadata.controller.decision import ControllerState, Decision
from barnabas.node.metadata.controller.delegation_tokens import remove_expired_tokens
from barnabas.node.metadata.controller.elections import balance_leaders, elect_unclean_leaders


class PeriodicDecision(NamedTuple):
    """`decide(state)` is due every `period_ms(config)`, first one period after activation.

    It returns None if there is nothing to do. The response of its decision says whether more
    remains: then it is due again at once.
    """

    name: str
    period_key: str
    unit_ms: int
    decide: Callable[[ControllerState], Decision[bool] | None]

    def period_ms(self, config: NodeConfig) -> int:
        """The interval between two decisions."""
        return config.get_int(self.period_key) * self.unit_ms


PERIODIC: Final = (
    PeriodicDecision(
        "balance leaders", "leader.imbalance.check.interval.seconds", 1000, balance_leaders
    ),
    PeriodicDecision(
        "elect unclean leaders", "unclean.leader.election.interval.ms", 1, elect_unclean_leaders
    ),
    PeriodicDecision(
        "remove expired delegation tokens",
        "delegation.token.expiry.check.interval.ms",
        1,
        remove_expired_tokens,
    ),
)
