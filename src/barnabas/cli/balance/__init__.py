"""Where replicas belong and how they get there: planner, plan files, throttles, execution."""
