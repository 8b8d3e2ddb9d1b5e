"""What stands before a listener's service where clients have to log in by SASL."""
