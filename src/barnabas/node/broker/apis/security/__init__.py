"""The APIs of authentication and authorisation."""
