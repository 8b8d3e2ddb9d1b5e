"""The transaction coordinator (KIP-98, KIP-360, KIP-447, KIP-664, KIP-890).

`service.py` is the door, `shard.py` the machine behind one partition of `__transaction_state`,
`ending.py` how a transaction ends, `markers.py` how its end reaches every partition that it wrote
to, and `verifier.py` how the leader of a partition asks whether a transaction is under way.
"""
