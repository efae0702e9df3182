"""Where records live: the four operations on a DynamoDB table, each safe to repeat.

From the top: ``port`` says what the layer needs of any store; ``dynamodb`` keeps it over time
(deadlines, repeating, what a repeated write means); ``items`` knows attributes and conditions;
``transport`` is the port of one attempt, which ``boto`` implements. This wing imports values and
errors. It knows nothing of events and of who may run.
"""
