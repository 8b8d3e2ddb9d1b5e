"""Checks of `barnabas doctor` on the nodes of a cluster: quorum, balance, racks, directories."""

from collections.abc import Iterator, Sequence

from barnabas.cli.admin import Admin, broker_values, topic_values
from barnabas.cli.balance.model import Load, loads
from barnabas.cli.balance.survey import Survey, survey
from barnabas.cli.balance.throttles import throttled_brokers
from barnabas.cli.cluster.quorum_state import Quorum, read_quorum
from barnabas.cli.connection import Connection
from barnabas.cli.doctor.findings import Finding, fault, note, ok
from barnabas.cli.errors import CliError
from barnabas.cli.output import counted, first_few
from barnabas.kafka.wire_routing import PartitionState

NAMED_MAX = 5
SPREAD_NOTED_PERCENT = 20
"""Difference between the fullest and the emptiest node, of the average, that is worth a word."""
QUORUM_LAG_NOTED = 1000
MIN_IN_SYNC = "min.insync.replicas"
INTERNAL_TOPICS = {
    "offsets.topic.replication.factor": ("__consumer_offsets", "consumer groups"),
    "transaction.state.log.replication.factor": ("__transaction_state", "transactions"),
    "share.coordinator.state.topic.replication.factor": ("__share_group_state", "share groups"),
}
"""By the setting that says how many brokers a topic needs: the topic, and what it is for."""


def check_nodes(connection: Connection) -> Iterator[Finding]:
    """Everything that needs more than a client's view; one note if that is not available."""
    try:
        with Admin(connection) as admin:
            surveyed = survey(admin)
            quorum = read_quorum(admin, surveyed.cluster.fenced)
            throttled = (
                [] if surveyed.in_flight else throttled_brokers(admin, surveyed.cluster.live)
            )
            yield from check_min_in_sync(admin, surveyed.partitions)
            yield from check_internal_topics(admin, surveyed)
    except CliError as error:
        yield note("nodes", f"not checked: {error.line()}")
        return
    yield from check_quorum(quorum)
    yield from check_brokers(surveyed)
    if len(surveyed.cluster.brokers) > 1:
        yield from check_balance(surveyed)
        yield from check_racks(surveyed)
        yield from check_replicas(surveyed.partitions)
    if throttled:
        nodes = ", ".join(map(str, throttled))
        yield note(
            "throttle",
            f"replication is throttled on nodes {nodes}, and nothing is being moved",
            "barnabas rebalance removes what an interrupted run left behind",
        )


def down_brokers(connection: Connection) -> list[int]:
    """Ids of the brokers that the cluster takes for down; none where it does not tell."""
    try:
        with Admin(connection) as admin:
            return admin.cluster().fenced
    except CliError:
        return []  # `check_nodes` meets the error too, and shows it


def check_quorum(quorum: Quorum) -> Iterator[Finding]:
    """Voters: enough, alive, an odd number, not behind."""
    voters = len(quorum.voters)
    gone = [str(voter.id) for voter in quorum.voters if not voter.is_alive]
    if gone:
        spare = quorum.alive - quorum.majority
        text = f"voters that do not follow: {', '.join(gone)}"
        if spare > 0:
            yield note("quorum", f"{text}; {spare} more may be lost", "start them")
        else:
            yield fault("quorum", f"{text}; no other may be lost", "start them")
    else:
        spare = voters - quorum.majority
        yield ok("quorum", f"{counted(voters, 'voter')}, all follow; {spare} may be lost")
    if voters % 2 == 0:
        yield note(
            "quorum",
            f"{voters} voters survive no more losses than {voters - 1}",
            "add or remove one: barnabas quorum add-voter, remove-voter",
        )
    for replica in (*quorum.voters, *quorum.observers):
        if replica.is_alive and replica.lag > QUORUM_LAG_NOTED:
            yield note("quorum", f"node {replica.id} is {replica.lag} metadata records behind")


def check_brokers(found: Survey) -> Iterator[Finding]:
    """Nodes that are down, and directories that have failed."""
    for broker in found.cluster.brokers.values():
        if broker.is_fenced:
            yield fault(
                "nodes",
                f"node {broker.id} at {broker.host}:{broker.port} is down",
                f"start it; if it is lost for good: barnabas cluster remove {broker.id}",
            )
    for number, directories in found.directories.items():
        for directory in directories:
            if directory.error:
                yield fault(
                    "nodes",
                    f"node {number}: directory {directory.path} has failed ({directory.error})",
                    "repair the disk and restart the node; other nodes hold its data",
                )
    if not any(broker.is_fenced for broker in found.cluster.brokers.values()):
        yield ok("nodes", f"{counted(len(found.cluster.brokers), 'broker')}, all up")


def check_balance(found: Survey) -> Iterator[Finding]:
    """Leaders where they should be; replicas and leaders spread."""
    astray = [
        str(state.key)
        for state in found.partitions
        if state.replicas and state.leader >= 0 and state.leader != state.replicas[0]
    ]
    if astray:
        yield note(
            "leaders",
            f"not the preferred ones: {some(astray)}",
            "barnabas topic elect-leaders, once all replicas are in sync",
        )
    live = set(found.cluster.live)
    held = [load for load in loads(found.brokers(), found.placement()) if load.broker in live]
    if not held:
        return  # the one that answers is fenced itself
    uneven = [text for text in (_spread(held, "replicas"), _spread(held, "leaders")) if text]
    if uneven:
        yield note("balance", "; ".join(uneven), "barnabas rebalance --dry-run")
    elif not astray:
        yield ok("balance", "replicas and leaders are spread evenly")


def _spread(held: Sequence[Load], what: str) -> str:
    counts = {load.broker: getattr(load, what) for load in held}
    most, least = max(counts, key=counts.__getitem__), min(counts, key=counts.__getitem__)
    difference = counts[most] - counts[least]
    average = sum(counts.values()) / len(counts)
    if difference < 2 or difference * 100 <= SPREAD_NOTED_PERCENT * average:
        return ""
    return f"node {most} has {counts[most]} {what}, node {least} {counts[least]}"


def check_racks(found: Survey) -> Iterator[Finding]:
    """Check that no partition is lost with a rack."""
    racks = {broker.id: broker.rack for broker in found.cluster.brokers.values()}
    named = {rack for rack in racks.values() if rack is not None}
    if not named:
        return
    without = [str(number) for number, rack in racks.items() if rack is None]
    if without:
        yield note(
            "racks",
            f"nodes without a rack: {', '.join(without)}; racks have no effect until all have one",
            "set broker.rack",
        )
        return
    together = [
        str(state.key)
        for state in found.partitions
        if len(state.replicas) > 1 and len({racks.get(number) for number in state.replicas}) == 1
    ]
    if together and len(named) > 1:
        yield note("racks", f"all replicas in one rack: {some(together)}", "barnabas rebalance")
    elif len(named) == 1:
        yield note("racks", f"all nodes are in rack {named.pop()}")
    else:
        yield ok("racks", f"{len(named)}, every partition in more than one")


def check_replicas(states: Sequence[PartitionState]) -> Iterator[Finding]:
    """Topics that are lost with one node."""
    single = list(dict.fromkeys(state.topic for state in states if len(state.replicas) == 1))
    if single:
        yield note(
            "replicas",
            f"topics with a single replica: {some(single)}",
            "give them more: barnabas topic reassign",
        )


def check_min_in_sync(admin: Admin, states: Sequence[PartitionState]) -> Iterator[Finding]:
    """Partitions that take no writes with acks=all. Raises CliError."""
    lagging = [state for state in states if len(state.isr) < len(state.replicas)]
    topics = sorted({state.topic for state in lagging})
    wanted = topic_values(admin, topics, MIN_IN_SYNC) if topics else {}
    refusing = [
        str(state.key) for state in lagging if len(state.isr) < int(wanted.get(state.topic, "1"))
    ]
    if refusing:
        yield fault(
            "in sync",
            f"fewer replicas than {MIN_IN_SYNC}, so acks=all is refused: {some(refusing)}",
            "start the nodes that hold the others",
        )


def check_internal_topics(admin: Admin, found: Survey) -> Iterator[Finding]:
    """Topics that the brokers create at their first use, and cannot. Raises CliError."""
    brokers, existing = found.cluster.brokers, {state.topic for state in found.partitions}
    missing = {key: use for key, (topic, use) in INTERNAL_TOPICS.items() if topic not in existing}
    if not missing or not found.cluster.live:
        return
    wanted = broker_values(admin, found.cluster.live[0], list(missing))
    for key, replicas in wanted.items():
        if int(replicas) > len(brokers):
            yield fault(
                "internal topics",
                f"{key} is {replicas}, but the cluster has {counted(len(brokers), 'broker')}: "
                f"{missing[key]} do not work",
                f"set {key}={len(brokers)} on every broker, or add brokers",
            )


def some(names: Sequence[str]) -> str:
    """The first names of a list."""
    return first_few(names, NAMED_MAX)
