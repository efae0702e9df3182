"""An ordinary handler: nothing in it knows of lambda-once."""


def handler(event, context):
    """Charge one order: {"orderId": "1001", "amount": 49.9}."""
    return {"orderId": event["orderId"], "charged": event["amount"]}
