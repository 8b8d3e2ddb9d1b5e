"""OAUTHBEARER, as the accepting side sees it; what a token is worth is `base/oauth/`."""
