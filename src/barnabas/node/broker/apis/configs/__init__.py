"""APIs of configuration."""
