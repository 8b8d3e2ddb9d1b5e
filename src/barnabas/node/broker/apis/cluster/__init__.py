"""APIs of the cluster: versions, nodes, log directories, the quorum."""
