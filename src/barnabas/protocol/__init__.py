"""Messages, record batches and error codes, to bytes and back."""
