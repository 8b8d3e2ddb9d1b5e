"""What Java answers with an exception."""


class JavaError(ValueError):
    """A pattern has a fault, a group does not exist, or matching would take too long."""
