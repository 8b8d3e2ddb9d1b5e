"""TLS, passwords and credentials: of the server's listeners, and of its clients of other services.

The only part of the pipeline that shares code with `base`: how stores of certificates and login
configurations are read.
"""
