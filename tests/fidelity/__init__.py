"""Nothing else about a function changes: the same functions with and without the layer."""
