"""Commands for users, ACLs, quotas, tokens and certificates."""
