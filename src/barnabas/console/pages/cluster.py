"""Overview, topics, groups and nodes as JSON."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from barnabas.console.pages.calls import (
    BadRequestError,
    Call,
    Endpoint,
    destroying,
    members,
    of_cluster,
    shared,
    whole,
)
from barnabas.console.services.asking import AwayError, RefusedError
from barnabas.console.services.groups import Move, moved

CHANGES_MAX = 10_000
LATE_SHOWN_MAX = 5


def overview(call: Call) -> Any:
    """The cluster, what needs attention, and throughput."""
    view = call.services.cluster.view()
    rates = call.services.cluster.rates()
    partitions = sum(len(topic.partitions) for topic in view.topics.values())
    busiest = sorted(
        (
            (rate, name)
            for name, rate in rates.topics.items()
            if rate > 0 and call.user.may("view", topic=name)
        ),
        reverse=True,
    )
    return {
        "cluster_id": view.cluster_id,
        "controller": view.controller,
        "nodes": len(view.nodes),
        "nodes_up": sum(node.is_up for node in view.nodes.values()),
        "topics": sum(not topic.is_internal for topic in view.topics.values()),
        "partitions": partitions,
        "under_replicated": sum(topic.under_replicated for topic in view.topics.values()),
        "offline": sum(topic.offline for topic in view.topics.values()),
        "throughput": list(zip(rates.times_s, rates.total, strict=False)),
        "busiest": [{"name": name, "per_second": rate} for rate, name in busiest[:5]],
    }


def findings(call: Call) -> Any:
    """Return what needs attention, the worst first."""
    services = call.services
    found = services.cluster.findings(lambda name: call.user.may("view", topic=name))
    if call.user.may("view", everywhere=True):  # as the page with transactions wants it
        found += services.hanging.findings()
    return sorted(found, key=lambda one: one.severity != "bad")


def late_groups(call: Call) -> Any:
    """The groups with the most records still to read."""
    found = call.services.lateness.late(
        lambda name: call.user.may("view", group=name),
        lambda name: call.user.may("view", topic=name),
    )
    return replace(found, groups=found.groups[:LATE_SHOWN_MAX])


def topics(call: Call) -> Any:
    """A page of topics."""
    return call.services.topics.find(
        call.asked(),
        state=call.text("state"),
        internal=call.flag("internal"),
        sort=call.text("sort", "name"),
        descending=call.flag("descending"),
        allowed=lambda name: call.user.may("view", topic=name),
    )


def topic(call: Call) -> Any:
    """A topic, and what the user may do with it."""
    name = call.path["topic"]
    rights = ("read", "produce", "edit", "admin")
    may = {right: call.user.may(right, topic=name) for right in rights}
    return {**members(call.services.topics.one(name)), "may": may}


def partitions(call: Call) -> Any:
    """A page of a topic's partitions."""
    return call.services.topics.partitions(call.path["topic"], call.asked(100))


def topic_settings(call: Call) -> Any:
    """A topic's settings."""
    return call.services.topics.settings(call.path["topic"])


def topic_groups(call: Call) -> Any:
    """The groups that read a topic."""
    found = call.services.groups.of_topic(call.path["topic"])
    return [
        {**members(row), "lag": lag} for row, lag in found if call.user.may("view", group=row.name)
    ]


def create_topic(call: Call) -> Any:
    """Create a topic."""
    name = call.given("name")
    call.user.need("edit", "creating this topic", topic=name)
    settings = _settings(call.body.get("settings", {}))
    given = {key: value for key, value in settings.items() if value is not None}
    count, replication = call.given("partitions", int), call.given("replication", int)
    call.do(
        "create topic",
        name,
        lambda: call.services.topics.create(name, count, replication, given),
        partitions=count,
        settings=given,
    )
    return {"name": name}


delete_topic = destroying(
    "delete topic", "topic", lambda services, name: services.topics.delete(name)
)


def empty_topic(call: Call) -> Any:
    """Delete a topic's records; the body repeats its name."""
    name = call.path["topic"]
    call.confirm(name)
    count = call.do("delete records", name, lambda: call.services.topics.empty(name))
    return {"records": count}


def change_topic(call: Call) -> Any:
    """Change a topic's settings; null removes one."""
    name = call.path["topic"]
    settings = _settings(call.body.get("settings"))
    if not settings:
        raise BadRequestError("settings are missing")
    call.do(
        "change settings",
        name,
        lambda: call.services.topics.change(name, settings),
        settings=settings,
    )
    return {}


def add_partitions(call: Call) -> Any:
    """Give a topic more partitions."""
    name, count = call.path["topic"], call.given("count", int)
    call.do(
        "add partitions",
        name,
        lambda: call.services.topics.add_partitions(name, count),
        count=count,
    )
    return {}


def _settings(found: Any) -> dict[str, str | None]:
    if not isinstance(found, dict) or not all(
        value is None or isinstance(value, str) for value in found.values()
    ):
        raise BadRequestError("settings are not an object of texts")
    return found


def groups(call: Call) -> Any:
    """A page of groups."""
    return call.services.groups.find(
        call.asked(),
        state=call.text("state"),
        allowed=lambda name: call.user.may("view", group=name),
    )


def group(call: Call) -> Any:
    """A group with members and lag, in the topics that the user may see."""
    name = call.path["group"]
    found = call.services.groups.one(name, lambda topic: call.user.may("view", topic=topic))
    may = {right: call.user.may(right, group=name) for right in ("edit", "admin")}
    return {**members(found), "may": may}


def plan_reset(call: Call) -> Any:
    """Return what a reset would move."""
    moves = _plan(call)
    return {"moves": moves, "records": moved(moves)}


def reset_group(call: Call) -> Any:
    """Reset a group's offsets to what was shown before; the body repeats its name."""
    name = call.path["group"]
    call.confirm(name)
    shown = call.given("moves", list)
    if len(shown) > CHANGES_MAX:
        raise BadRequestError("too many partitions")
    try:
        moves = [
            Move(str(one["topic"]), int(one["partition"]), one.get("before"), int(one["after"]))
            for one in shown
        ]
    except (TypeError, KeyError, ValueError, AttributeError):
        raise BadRequestError("moves are not as the preview gives them") from None
    for topic in {one.topic for one in moves}:
        call.user.need("view", "resetting offsets of this topic", topic=topic)
    call.do(
        "reset offsets",
        name,
        lambda: call.services.groups.reset(name, moves),
        moves=[f"{one.topic}-{one.partition}: {one.before} to {one.after}" for one in moves[:100]],
    )
    return {}


def _plan(call: Call) -> list[Move]:
    name, to = call.path["group"], call.given("to")
    value = call.body.get("value", 0)
    wanted = call.body.get("topics", [])
    if not isinstance(value, int) or not isinstance(wanted, list):
        raise BadRequestError("value is not a whole number, or topics are not a list")
    topics = [str(one) for one in wanted]
    for topic in topics:
        call.user.need("view", "planning with this topic", topic=topic)
    moves: list[Move] = call.services.groups.plan(
        name, to, value, topics, lambda topic: call.user.may("view", topic=topic)
    )
    return moves


delete_group = destroying(
    "delete group", "group", lambda services, name: services.groups.delete(name)
)


def nodes(call: Call) -> Any:
    """Nodes with their log directories, and the quorum; what is not known says why."""
    cluster = call.services.cluster
    view = cluster.view()
    leads: dict[int, int] = {}
    has: dict[int, int] = {}
    behind: dict[int, int] = {}
    for found in view.topics.values():
        for part in found.partitions:
            leads[part.leader] = leads.get(part.leader, 0) + 1
            for node in part.replicas:
                has[node] = has.get(node, 0) + 1
                if node not in part.isr:
                    behind[node] = behind.get(node, 0) + 1
    answer: dict[str, Any] = {
        "controller": view.controller,
        "nodes": [
            {
                **members(node),
                "leads": leads.get(node.id, 0),
                "replicas": has.get(node.id, 0),
                "behind": behind.get(node.id, 0),
            }
            for node in view.nodes.values()
        ],
    }
    for name, ask in (("sizes", cluster.sizes), ("quorum", cluster.quorum)):
        try:
            found_part: Any = ask()
        except (AwayError, RefusedError) as error:
            answer[name] = {"error": str(error)}
        else:
            answer[name] = (
                {"directories": found_part.directories, "missing": found_part.missing}
                if name == "sizes"
                else found_part
            )
    return answer


def node_settings(call: Call) -> Any:
    """A node's settings."""
    node = whole(call.path["node"], "a node")
    return call.services.topics.node_settings(node)


def audit(call: Call) -> Any:
    """A page of what was done, the newest first."""
    asked = call.asked()
    return asked.of(call.services.audit.recent(asked.fits))


_TOPIC, _GROUP = "/api/topics/{topic}", "/api/groups/{group}"

ENDPOINTS = (
    shared("/api/overview", "the overview", overview),
    shared("/api/findings", "the overview", findings),
    shared("/api/late-groups", "the overview", late_groups),
    shared("/api/topics", "the list of topics", topics),
    Endpoint("POST", "/api/topics", "edit", "creating topics", create_topic),
    shared(_TOPIC, "this topic", topic),
    Endpoint("DELETE", _TOPIC, "admin", "deleting this topic", delete_topic),
    shared(f"{_TOPIC}/partitions", "this topic", partitions),
    Endpoint("POST", f"{_TOPIC}/partitions", "edit", "adding partitions", add_partitions),
    shared(f"{_TOPIC}/settings", "this topic", topic_settings),
    Endpoint("POST", f"{_TOPIC}/settings", "edit", "changing settings", change_topic),
    shared(f"{_TOPIC}/groups", "this topic", topic_groups),
    Endpoint("DELETE", f"{_TOPIC}/records", "admin", "deleting records", empty_topic),
    shared("/api/groups", "the list of groups", groups),
    shared(_GROUP, "this group", group),
    Endpoint("POST", f"{_GROUP}/plan", "view", "this group", plan_reset),
    Endpoint("POST", f"{_GROUP}/reset", "edit", "resetting this group", reset_group),
    Endpoint("DELETE", _GROUP, "admin", "deleting this group", delete_group),
    shared("/api/nodes", "the nodes", nodes),
    shared("/api/nodes/{node}/settings", "the nodes", node_settings),
    of_cluster("GET", "/api/audit", "admin", "the audit log", audit),
)
