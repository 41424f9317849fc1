"""What a person can list, show, change, approve or undo: a function each, in a file of its noun, for every surface."""
