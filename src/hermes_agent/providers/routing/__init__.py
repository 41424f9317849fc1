"""Where a question is asked: a chain of models, their keys, what rests, and what follows a failure."""
