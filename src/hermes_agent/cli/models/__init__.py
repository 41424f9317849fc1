"""What `hermes model` lists: models, keys, and who works beside the model that answers."""
