"""What goes wrong with records and tasks, and what is done about it."""
