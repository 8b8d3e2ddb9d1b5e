"""Login by an identity provider (OpenID Connect), with the authorisation code flow and PKCE."""
