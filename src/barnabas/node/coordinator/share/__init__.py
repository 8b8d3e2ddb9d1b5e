"""The share coordinator: where share groups are in each partition (KIP-932).

`state.py` says what is stored, `persister.py` how share-partition leaders read and write it.
"""
