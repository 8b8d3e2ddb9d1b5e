"""Random histories of a cluster: what must hold after every step, and the snapshot of each."""

from cluster_history import ClusterHistory
from hypothesis import settings

TestClusterHistory = ClusterHistory.TestCase
TestClusterHistory.settings = settings(max_examples=100, stateful_step_count=50, deadline=None)
