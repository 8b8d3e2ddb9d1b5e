"""The schema registry beside Karapace: separate processes, the same broker.

Barnabas does not depend on Karapace. It needs Python 3.12 or later; its sources and what its
`requirements/requirements.txt` names, installed into an environment of their own, will do:
`python -m bench --only registry --karapace /path/to/environment/bin/python`.
"""
