"""The parts of a run: each knows how it is started, when it is ready, and how it is doing.

A new part is a class on `part.Part`, and its calls in `orchestrator.py`.
"""
