"""Replica balance: planner, plan files, throttles, execution."""
