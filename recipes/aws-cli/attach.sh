#!/usr/bin/env bash
# Attach lambda-once to a function that you have. Its code, other layers and other variables stay as they are, and
# running this again changes nothing more. Needs the AWS CLI, and credentials and a Region set up for it.
#
#   recipes/aws-cli/attach.sh FUNCTION [KEY]
#
# KEY is a JMESPath expression over the event, such as orderId; without it the event source identifies each event.
# TABLE (idempotency) and ZIP (dist/lambda-once.zip) can be set in the environment.
set -euo pipefail
shopt -s inherit_errexit

function=${1:?usage: attach.sh FUNCTION [KEY]}
key=${2:-}
table=${TABLE:-idempotency}
zip=${ZIP:-$(dirname "$0")/../../dist/lambda-once.zip}

die() {
  printf 'attach.sh: %s\n' "$*" >&2
  exit 1
}

# ask COMMAND...: the AWS CLI's answer as text; "None" is how it writes nothing.
ask() {
  local answer
  answer=$(aws --output text "$@")
  [ "$answer" = None ] || printf '%s\n' "$answer"
}

# configured QUERY: something of the function's configuration.
configured() { ask lambda get-function-configuration --function-name "$function" --query "$1"; }

# What cannot be attached to is found before anything is made.
name=$(configured FunctionName)
runtime=$(configured Runtime)
case $runtime in
  python*) ;;
  "") die "$name is a container image, which cannot have layers; see recipes/container." ;;
  *) die "$name runs on $runtime; the layer guards functions in Python." ;;
esac
[ -f "$zip" ] || die "$zip is not there; ./build.sh makes it."

# The table: made if it is not there.
if ! aws dynamodb describe-table --table-name "$table" >/dev/null 2>&1; then
  aws dynamodb create-table --table-name "$table" --billing-mode PAY_PER_REQUEST \
    --attribute-definitions AttributeName=id,AttributeType=S --key-schema AttributeName=id,KeyType=HASH >/dev/null
  aws dynamodb wait table-exists --table-name "$table"
  aws dynamodb update-time-to-live --table-name "$table" \
    --time-to-live-specification Enabled=true,AttributeName=expires_at >/dev/null
fi
table_arn=$(ask dynamodb describe-table --table-name "$table" --query Table.TableArn)

# The layer: published if its newest version is not this zip.
hash=$(python3 -c 'import base64, hashlib, sys
print(base64.b64encode(hashlib.sha256(open(sys.argv[1], "rb").read()).digest()).decode())' "$zip")
layer=$(ask lambda list-layer-versions --layer-name lambda-once --query 'LayerVersions[0].LayerVersionArn')
if [ -z "$layer" ] ||
  [ "$(ask lambda get-layer-version-by-arn --arn "$layer" --query Content.CodeSha256)" != "$hash" ]; then
  layer=$(ask lambda publish-layer-version --layer-name lambda-once --zip-file "fileb://$zip" \
    --compatible-runtimes python3.10 python3.11 python3.12 python3.13 python3.14 \
    --compatible-architectures x86_64 arm64 --license-info MIT --query LayerVersionArn)
fi

# The policy: four actions on the function's own records.
role=$(configured Role)
scope=$(configured 'Environment.Variables.IDEMPOTENCY_SCOPE || FunctionName')
aws iam put-role-policy --role-name "${role##*/}" --policy-name "lambda-once-$name" --policy-document '{
  "Version": "2012-10-17",
  "Statement": [{
    "Effect": "Allow",
    "Action": ["dynamodb:PutItem", "dynamodb:GetItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem"],
    "Resource": "'"$table_arn"'",
    "Condition": {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["'"$scope"'#*"]}}
  }]
}'

# The function: its other layers and variables, and ours. Another exec wrapper that it has runs after ours.
other_layers=$(configured "(Layers || \`[]\`)[?!contains(Arn, ':layer:lambda-once:')].Arn")
wrapper=$(configured Environment.Variables.AWS_LAMBDA_EXEC_WRAPPER)
ours="AWS_LAMBDA_EXEC_WRAPPER: '/opt/lambda-once', IDEMPOTENCY_TABLE: '$table'"
[ "${wrapper:-/opt/lambda-once}" = /opt/lambda-once ] || ours="$ours, IDEMPOTENCY_NEXT_WRAPPER: '$wrapper'"
[ -z "$key" ] || ours="$ours, IDEMPOTENCY_KEY: '${key//\'/\\\'}'"
environment=$(aws --output json lambda get-function-configuration --function-name "$function" \
  --query "{Variables: merge(Environment.Variables || \`{}\`, {$ours})}")
# shellcheck disable=SC2086 # the ARNs of layers are words
aws lambda update-function-configuration --function-name "$function" --environment "$environment" \
  --layers $other_layers "$layer" >/dev/null
aws lambda wait function-updated --function-name "$function"
printf '%s is guarded by %s, with its records in %s.\n' "$name" "$layer" "$table"
