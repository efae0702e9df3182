"""From values to a key or a fingerprint.

This wing knows JSON and JMESPath, and nothing of events, callers or stores. It imports the errors
and what is bundled, and no other wing.
"""
