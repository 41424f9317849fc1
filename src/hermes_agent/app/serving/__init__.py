"""What the surfaces that serve many people share: their settings, and what each person may reach."""
