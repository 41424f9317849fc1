"""Routing of model requests: a chain of models with their keys, cool-downs, and the reaction to failures."""
