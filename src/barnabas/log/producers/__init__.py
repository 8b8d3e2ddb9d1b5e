"""Who wrote what: the state behind idempotent and transactional producers (KIP-98)."""
