"""Commands for the nodes of a cluster: membership, quorum, features, balance."""
