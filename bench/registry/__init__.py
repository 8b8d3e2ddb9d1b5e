"""The schema registry beside Karapace: each in a process of its own, over the same broker.

Karapace is no dependency of ours. It needs Python 3.12 or later; its sources and what its
`requirements/requirements.txt` names, installed into an environment of their own, will do:
`python -m bench --only registry --karapace /path/to/environment/bin/python`.
"""
