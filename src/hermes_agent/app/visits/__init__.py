"""What each person may reach, whatever surface they come in by."""
