"""Scheduled jobs: schedules, planned instants, their firing and their ends."""
