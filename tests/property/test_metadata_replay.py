"""Random histories of a cluster: what must hold after every step, and the snapshot of each."""

from cluster_history import ClusterHistory
from hypothesis import settings

from barnabas.protocol.features import MetadataVersion
from support.effort import examples

TestClusterHistory = ClusterHistory.TestCase
TestClusterHistory.settings = settings(
    max_examples=examples(15), stateful_step_count=50, deadline=None
)


def test_a_leader_from_outside_the_isr_may_end_a_reassignment() -> None:
    """Then nobody is eligible who left with that; a history found it."""
    history = ClusterHistory()
    history.start(MetadataVersion.IBP_4_3_IV0, seed=0)
    history.fence(2)
    history.fence(0)
    history.all_come_back(clean=True)
    history.reassign(which=1, replicas=[0])
    history.fence(1)
    history.partitions_make_sense()
    _, _, partition = history.find(1)
    assert (partition.replicas, partition.isr, partition.elr) == ((0,), (0,), ())
