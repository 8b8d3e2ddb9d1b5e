"""Commands of `barnabas registry`. All but `start` are clients of Confluent's REST interface.

They need the standard library only, so they work where the extra `registry` is not installed.
"""
