"""ShareFetch, ShareAcknowledge and the share coordinator's APIs."""
