"""A function under lambda-once."""

import json

import pulumi
import pulumi_aws as aws

FUNCTION = "orders"

layer = aws.lambda_.LayerVersion(
    "lambda-once",
    layer_name="lambda-once",
    code=pulumi.FileArchive("../../dist/lambda-once.zip"),
    compatible_architectures=["x86_64", "arm64"],
    skip_destroy=True,  # functions may still use an old version
)

table = aws.dynamodb.Table(
    "idempotency",
    name="idempotency",
    billing_mode="PAY_PER_REQUEST",
    hash_key="id",
    attributes=[{"name": "id", "type": "S"}],
    ttl={"attribute_name": "expires_at", "enabled": True},
    # Without its records, events that are repeated run again.
    deletion_protection_enabled=True,
)

role = aws.iam.Role(
    FUNCTION,
    assume_role_policy=json.dumps(
        {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Effect": "Allow",
                    "Action": "sts:AssumeRole",
                    "Principal": {"Service": "lambda.amazonaws.com"},
                }
            ],
        }
    ),
)

aws.iam.RolePolicyAttachment(
    "logs",
    role=role.name,
    policy_arn="arn:aws:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole",
)

aws.iam.RolePolicy(
    "lambda-once",
    role=role.id,
    policy=pulumi.Output.json_dumps(
        {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Effect": "Allow",
                    "Action": [
                        "dynamodb:PutItem",
                        "dynamodb:GetItem",
                        "dynamodb:UpdateItem",
                        "dynamodb:DeleteItem",
                    ],
                    "Resource": table.arn,
                    "Condition": {
                        "ForAllValues:StringLike": {"dynamodb:LeadingKeys": [f"{FUNCTION}#*"]}
                    },
                }
            ],
        }
    ),
)

function = aws.lambda_.Function(
    FUNCTION,
    name=FUNCTION,
    role=role.arn,
    runtime="python3.13",
    handler="app.handler",
    code=pulumi.FileArchive("src"),
    timeout=10,
    layers=[layer.arn],
    environment={
        "variables": {
            "AWS_LAMBDA_EXEC_WRAPPER": "/opt/lambda-once",
            "IDEMPOTENCY_TABLE": table.name,
            "IDEMPOTENCY_KEY": "orderId",
        }
    },
)

pulumi.export("function", function.name)
