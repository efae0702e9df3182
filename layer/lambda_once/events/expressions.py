"""Expressions over events: JMESPath with our functions, those that read a request included."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..keys.expressions import Expression, compile_with

if TYPE_CHECKING:
    from jmespath.visitor import Options


def compile_expression(text: str) -> Expression:
    """Compile ``text``; raises ValueError that says where it is wrong."""
    return compile_with(text, _options)


def _options() -> Options:
    from jmespath.visitor import Options

    from .functions import EventFunctions

    return Options(custom_functions=EventFunctions())
