"""The share coordinator: where share groups are in each partition (KIP-932).

`state.py` says what is kept, `persister.py` how whoever delivers records asks for it.
"""
