"""A function under lambda-once."""

from pathlib import Path

from aws_cdk import App, Duration, RemovalPolicy, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

HERE = Path(__file__).parent
FUNCTION = "orders"


class OrdersStack(Stack):
    """The layer, the table, the function, and what the function may do with the table."""

    def __init__(self, scope: Construct, name: str) -> None:
        super().__init__(scope, name)
        layer = lambda_.LayerVersion(
            self,
            "LambdaOnce",
            layer_version_name="lambda-once",
            code=lambda_.Code.from_asset(str(HERE / "../../dist/lambda-once.zip")),
            compatible_architectures=[lambda_.Architecture.X86_64, lambda_.Architecture.ARM_64],
        )
        table = dynamodb.Table(
            self,
            "Idempotency",
            table_name="idempotency",
            partition_key=dynamodb.Attribute(name="id", type=dynamodb.AttributeType.STRING),
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            time_to_live_attribute="expires_at",
            # Without its records, events that are repeated run again.
            removal_policy=RemovalPolicy.RETAIN,
        )
        function = lambda_.Function(
            self,
            "Orders",
            function_name=FUNCTION,
            runtime=lambda_.Runtime.PYTHON_3_13,
            handler="app.handler",
            code=lambda_.Code.from_asset(str(HERE / "src")),
            timeout=Duration.seconds(10),
            layers=[layer],
            environment={
                "AWS_LAMBDA_EXEC_WRAPPER": "/opt/lambda-once",
                "IDEMPOTENCY_TABLE": table.table_name,
                "IDEMPOTENCY_KEY": "orderId",
            },
        )
        function.add_to_role_policy(
            iam.PolicyStatement(
                actions=[
                    "dynamodb:PutItem",
                    "dynamodb:GetItem",
                    "dynamodb:UpdateItem",
                    "dynamodb:DeleteItem",
                ],
                resources=[table.table_arn],
                conditions={"ForAllValues:StringLike": {"dynamodb:LeadingKeys": [f"{FUNCTION}#*"]}},
            )
        )


app = App()
OrdersStack(app, "orders")
app.synth()
