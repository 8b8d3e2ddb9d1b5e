"""OAUTHBEARER, as the accepting side sees it: tokens, and the keys that they are held against."""
