"""The parameter of each Region that holds the ARN of the newest version.

Only AWS itself has parameters that everybody can read. Ours can be read in the account, and by an
organisation if it is shared with it, through a resource share; that takes the advanced tier.
Source: the user guide of Systems Manager on shared parameters.
"""

from __future__ import annotations

from .calls import Calls, PublishError
from .layers import NAME, Audience, Published

PARAMETER = "/lambda-once/layer"
_ORGANIZATIONS_REGION = "us-east-1"


def organization_arn(calls: Calls, organization: str) -> str:
    """The ARN of the account's organisation; raises PublishError if it is not the one named."""
    found = calls.read(_ORGANIZATIONS_REGION, "organizations", "describe_organization")
    own = found["Organization"] if found else {"Id": "none", "Arn": ""}
    if own["Id"] != organization:
        raise PublishError(
            f"--organization {organization}: this account's organisation is {own['Id']}."
            " A parameter can be shared only within one's own."
        )
    return str(own["Arn"])


def point(calls: Calls, published: Published, audience: Audience, organization_arn: str) -> None:
    """Let the parameter name this version, and share it with the organisation, if one is named."""
    region = published.region
    to_share = bool(audience.organization) and not _is_shared(calls, region)
    found = calls.read(region, "ssm", "get_parameter", Name=PARAMETER)
    # One that is to be shared is written in any case: it may be of the standard tier.
    if to_share or not found or found["Parameter"]["Value"] != published.arn:
        calls.write(
            region,
            "ssm",
            "put_parameter",
            Name=PARAMETER,
            Value=published.arn,
            Type="String",
            Description="The newest version of the layer lambda-once",
            Tier="Advanced" if audience.organization else "Intelligent-Tiering",
            Overwrite=True,
        )
    if to_share:
        _share(calls, published, organization_arn)


def _is_shared(calls: Calls, region: str) -> bool:
    found = calls.read(
        region,
        "ram",
        "get_resource_shares",
        resourceOwner="SELF",
        name=NAME,
        resourceShareStatus="ACTIVE",
    )
    return bool(found and found["resourceShares"])


def _share(calls: Calls, published: Published, organization_arn: str) -> None:
    region = published.region
    partition, account = published.arn.split(":")[1], published.arn.split(":")[4]
    calls.write(
        region,
        "ram",
        "create_resource_share",
        name=NAME,
        resourceArns=[f"arn:{partition}:ssm:{region}:{account}:parameter{PARAMETER}"],
        principals=[organization_arn],
        allowExternalPrincipals=False,
    )
