"""APIs of the controller's listener."""
