"""SASL mechanisms, as the side that is logged in to sees them. Pure: time is an argument."""
