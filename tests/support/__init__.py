"""What tests share: real processes, and conditions to wait for."""
