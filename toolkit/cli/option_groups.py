"""Options of a command that are declared together, as fields of a dataclass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, get_args, get_type_hints

from typer.models import OptionInfo


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


def given_words(options: Any) -> list[str]:
    """Words of a command line that give these options; those with their default are left out.

    Options that may be repeated come last.
    """
    annotations = get_type_hints(type(options), include_extras=True)
    once, repeated = list[str](), list[str]()
    for field in fields(options):
        value = getattr(options, field.name)
        if field.default is MISSING or value is None or value == field.default:
            continue
        name = _name_of(field.name, annotations[field.name])
        if isinstance(value, list):
            repeated += [word for one in value for word in (name, one)]
        elif isinstance(value, bool):
            once.append(name)
        else:
            once += [name, f"{value:.12g}" if isinstance(value, float) else str(value)]
    return once + repeated


def _name_of(field: str, annotation: Any) -> str:
    """The shortest name of an option, by its field and the annotation of that."""
    (info,) = (one for one in get_args(annotation) if isinstance(one, OptionInfo))
    written = (one for one in (info.default, *(info.param_decls or ())) if isinstance(one, str))
    return min(written, key=len, default=f"--{field.replace('_', '-')}")
