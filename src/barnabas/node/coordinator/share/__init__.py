"""The share coordinator: where share groups are in each partition (KIP-932).

`state.py` says what is stored and how share-partition leaders read and write it (`Persister`);
`persister_client.py` does so through the coordinator.
"""
