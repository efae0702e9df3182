"""Run a Pulumi program without an engine, and print the resources that it asks for, as JSON."""

from __future__ import annotations

import json
import runpy
import sys
from typing import Any

import pulumi

resources: list[dict[str, Any]] = []


class Recorder(pulumi.runtime.Mocks):
    """Takes every resource as made as it was asked for, with an ARN."""

    def new_resource(self, args: Any) -> tuple[str, dict[str, Any]]:
        resources.append({"type": args.typ, "inputs": args.inputs})
        return f"{args.name}-id", {**args.inputs, "arn": f"arn:{args.name}"}

    def call(self, args: Any) -> dict[str, Any]:
        return {}


pulumi.runtime.set_mocks(Recorder())


@pulumi.runtime.test
def program() -> None:
    runpy.run_path(sys.argv[1])


program()
print(json.dumps(resources, default=lambda asset: asset.path))
