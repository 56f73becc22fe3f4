"""Options of a command that are declared together, as fields of a dataclass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any


def takes_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command, with each parameter that is a dataclass of options replaced by its fields."""
    groups: dict[str, type[Any]] = {}
    parameters: list[Parameter] = []
    for name, parameter in signature(command, eval_str=True).parameters.items():
        options: type[Any] = parameter.annotation
        if is_dataclass(options):
            groups[name] = options
            parameters += signature(options, eval_str=True).parameters.values()
        else:
            parameters.append(parameter.replace(kind=Parameter.KEYWORD_ONLY))

    @wraps(command)
    def run(**given: Any) -> None:
        made = {
            name: options(**{field.name: given.pop(field.name) for field in fields(options)})
            for name, options in groups.items()
        }
        command(**made, **given)

    vars(run)["__signature__"] = Signature(parameters)
    return run
