"""OAuth 2 as clients use it: tokens, and where they come from."""
