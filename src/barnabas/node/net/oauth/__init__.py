"""OAUTHBEARER: the message that both sides know, and how a node gets a token for its own logins."""
