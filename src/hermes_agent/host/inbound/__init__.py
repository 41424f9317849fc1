"""Requests from elsewhere: the one HTTP listener, what a request has to pass, and answers as events."""
