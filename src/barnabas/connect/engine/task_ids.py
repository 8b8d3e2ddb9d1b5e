"""The transactional ids under which an exactly-once source's task writes and decides.

Whoever takes them over fences the task: it fails at its next micro-batch.
"""

from __future__ import annotations

from barnabas.spark.datasource.committer import sink_name


def transactional_id(group_id: str, connector: str, task: int) -> str:
    """Return the id of the local engine's transactions, as Kafka's worker names it."""
    return f"{group_id}-{connector}-{task}"


def decisions_name(task_id: str) -> str:
    """Return the name under which the engine on Spark decides for a task, by its id."""
    return f"connect.{task_id}"


def fenced_ids(group_id: str, connector: str, task: int) -> tuple[str, str]:
    """Return all ids to take over, of both engines."""
    own = transactional_id(group_id, connector, task)
    return own, f"{sink_name(decisions_name(own))}.decisions"
