"""CREATE OR REPLACE on Spark: whether a new plan goes on from the checkpoint of the old one.

The rules are ksqlDB's (analysis/upgrades.py). Beyond them Spark must find its operators and sources
as they were, and each operator its stores.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from barnabas.sql.analysis.upgrades import check_plan_upgrade
from barnabas.sql.errors import AnalysisError
from barnabas.sql.plan.encoding import decode_plan
from barnabas.sql.runtime.stage import Stage
from barnabas.sql.spark.topology import Topology


def shape_of(topology: Topology, stages: Sequence[Stage]) -> str:
    """What Spark has in its checkpoint of a plan: sources in order, stores of each operator."""
    sources = [[*place, topic] for place, topic in sorted(topology.topics.items())]
    operators = [
        [[stage, sorted(stages[stage].stores)] for stage in sorted(members)]
        for members in topology.operators
    ]
    return json.dumps([sources, operators])


def why_not_replaced(old: str, old_shape: str, new: str, new_shape: str) -> str:
    """Why the new plan cannot go on where the old one stopped; empty if it can.

    Plans are as `encode_plan` gives them.
    """
    if not old:
        return "It does not say of which plan it is."
    if old_shape != new_shape:
        return "Operators, their stores or the topics that they read differ."
    try:
        check_plan_upgrade(decode_plan(old).step, decode_plan(new).step)
    except AnalysisError as error:
        return str(error)
    return ""
