"""What `hermes skills` does beyond the home: repositories, and what all its commands share."""
