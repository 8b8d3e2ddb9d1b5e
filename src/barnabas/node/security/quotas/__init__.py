"""Quotas of clients: limits, measured rates, and how long a client must wait."""
