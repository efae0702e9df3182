"""A response to its stored form and back, byte for byte as the runtime marshals it.

This wing knows the runtime's marshaller as a function that it is given, and nothing of stores or
events. It imports the values in ``record`` only.
"""
