"""Skills: procedures as folders of text that a person can read, judge and undo."""
