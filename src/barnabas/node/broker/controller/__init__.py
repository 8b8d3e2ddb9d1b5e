"""APIs of the controller's listener, and how a broker's handlers ask the controller."""
