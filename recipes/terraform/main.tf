# A function under lambda-once.

terraform {
  required_version = ">= 1.5"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.80"
    }
    archive = {
      source  = "hashicorp/archive"
      version = ">= 2.4"
    }
  }
}

locals {
  function = "orders"
  zip      = "${path.module}/../../dist/lambda-once.zip"
}

resource "aws_lambda_layer_version" "lambda_once" {
  layer_name               = "lambda-once"
  filename                 = local.zip
  source_code_hash         = filebase64sha256(local.zip)
  compatible_architectures = ["x86_64", "arm64"]
  skip_destroy             = true # functions may still use an old version
}

resource "aws_dynamodb_table" "idempotency" {
  name                        = "idempotency"
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "id"
  deletion_protection_enabled = true # without its records, events that are repeated run again

  attribute {
    name = "id"
    type = "S"
  }

  ttl {
    attribute_name = "expires_at"
    enabled        = true
  }
}

data "archive_file" "orders" {
  type        = "zip"
  source_dir  = "${path.module}/src"
  output_path = "${path.module}/.terraform/orders.zip"
}

resource "aws_lambda_function" "orders" {
  function_name    = local.function
  role             = aws_iam_role.orders.arn
  runtime          = "python3.13"
  handler          = "app.handler"
  filename         = data.archive_file.orders.output_path
  source_code_hash = data.archive_file.orders.output_base64sha256
  timeout          = 10
  layers           = [aws_lambda_layer_version.lambda_once.arn]

  environment {
    variables = {
      AWS_LAMBDA_EXEC_WRAPPER = "/opt/lambda-once"
      IDEMPOTENCY_TABLE       = aws_dynamodb_table.idempotency.name
      IDEMPOTENCY_KEY         = "orderId"
    }
  }
}

resource "aws_iam_role" "orders" {
  name = local.function
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "lambda.amazonaws.com" }
    }]
  })
}

resource "aws_iam_role_policy_attachment" "logs" {
  role       = aws_iam_role.orders.name
  policy_arn = "arn:aws:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole"
}

data "aws_iam_policy_document" "idempotency" {
  statement {
    actions = [
      "dynamodb:PutItem",
      "dynamodb:GetItem",
      "dynamodb:UpdateItem",
      "dynamodb:DeleteItem",
    ]
    resources = [aws_dynamodb_table.idempotency.arn]

    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["${local.function}#*"]
    }
  }
}

resource "aws_iam_role_policy" "idempotency" {
  name   = "lambda-once"
  role   = aws_iam_role.orders.id
  policy = data.aws_iam_policy_document.idempotency.json
}
