"""lambda-once: idempotency for AWS Lambda functions, without a change to their code.

This package is the engine. It decides and stores; it never calls a handler and knows no Lambda
runtime. Nothing is imported here, so that importing the package costs nothing.
"""

__version__ = "1.0.0"
