"""Goals: criteria that are checked, and a loop that goes on until they hold or something stops it."""
