"""State of idempotent and transactional producers (KIP-98)."""
