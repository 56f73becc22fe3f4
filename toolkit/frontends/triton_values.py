"""Values of a Triton kernel's parameters: arguments, constexprs, and what decorators choose."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.errors import InputError
from reports.text import many
from toolkit.frontends.front_end import FrontEndRequest
from toolkit.frontends.triton_compiler import check_options

_MOST_SHOWN = 4  # configurations of an autotuned kernel in a message


@dataclass(frozen=True, kw_only=True)
class Bound:
    """Values of the parameters by name, in order, and Triton's options."""

    name: str
    values: Mapping[str, Any]
    positions: Mapping[str, int]  # of the user's arguments, by name
    options: Mapping[str, Any]

    @property
    def meta(self) -> dict[str, Any]:
        """Return the values that Triton gives to a function that computes the grid."""
        return {**self.options, **self.values}


# Which constexprs: those of `defines`, of a configuration of @autotune, and of @heuristics.


@dataclass(frozen=True, kw_only=True)
class Given:
    defines: dict[str, Any]
    heuristics: Sequence[Mapping[str, Callable[[dict[str, Any]], Any]]]


def chosen(compiled: Any, request: FrontEndRequest) -> tuple[Any, Given]:
    """The function within @autotune and @heuristics, and the values that they choose."""
    defines = {name: _python_value(value) for name, value in request.defines.items()}
    heuristics: list[Mapping[str, Callable[[dict[str, Any]], Any]]] = []
    while not hasattr(compiled, "params"):
        if hasattr(compiled, "configs"):
            defines = _of_configuration(compiled, defines)
        elif hasattr(compiled, "values"):
            heuristics.append(compiled.values)
        compiled = compiled.fn
    return compiled, Given(defines=defines, heuristics=heuristics)


def _python_value(value: object) -> Any:
    """A value of --define, which is text: a number, True, None, a type such as tl.float32."""
    if not isinstance(value, str):
        return value
    if value.startswith("tl."):
        import triton.language

        return getattr(triton.language, value.removeprefix("tl."), value)
    try:
        return ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return value


def _of_configuration(tuner: Any, defines: dict[str, Any]) -> dict[str, Any]:
    """`defines`, completed by the one configuration of @autotune that agrees with them."""
    configurations = [one.all_kwargs() for one in tuner.configs]
    agreeing = [
        one
        for one in configurations
        if all(one[name] == value for name, value in defines.items() if name in one)
    ]
    if len(agreeing) == 1:
        return {**agreeing[0], **defines}
    if all(name in defines for one in tuner.configs for name in one.kwargs):
        return defines
    name = tuner.base_fn.__name__
    listed = "; ".join(_written(one) for one in (agreeing or configurations)[:_MOST_SHOWN])
    more = ", …" if len(agreeing or configurations) > _MOST_SHOWN else ""
    raise InputError(
        f"{name} is autotuned, and {len(agreeing) or 'none'} of its {len(configurations)} "
        f"configurations agree with defines: choose one ({listed}{more})"
    )


def _written(configuration: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in configuration.items() if value is not None)


# Arguments.


def bound_values(function: Any, given: Given, request: FrontEndRequest) -> Bound:
    """The value of each parameter: by name, else the next argument, else its default."""
    name = function.__name__
    parameters = [one.name for one in function.params]
    values = {key: value for key, value in given.defines.items() if key in parameters}
    options = {key: value for key, value in given.defines.items() if key not in parameters}
    check_options(name, options, parameters, request.arch)
    chosen = {key for heuristics in given.heuristics for key in heuristics}
    open_names = [one for one in parameters if one not in values and one not in chosen]
    if len(request.arguments) > len(open_names):
        raise InputError(
            f"{name} takes {', '.join(open_names) or 'no argument'} beside "
            f"{', '.join(sorted({*values, *chosen})) or 'nothing'}, and {len(request.arguments)} "
            "arguments were given"
        )
    positions = {key: k for k, key in enumerate(open_names[: len(request.arguments)])}
    values |= {key: request.arguments[k] for key, k in positions.items()}
    for one in function.params:
        if one.has_default:
            values.setdefault(one.name, one.default)
    for heuristics in given.heuristics:
        for key, value in heuristics.items():
            values[key] = value({**values, **options})
    if missing := [one for one in function.params if one.name not in values]:
        raise InputError(f"{name}: no value for {_asked(missing)}")
    return Bound(
        name=name,
        values={one: values[one] for one in parameters},
        positions=positions,
        options=options,
    )


def _asked(missing: Sequence[Any]) -> str:
    first = missing[0].name
    is_constant = missing[0].is_constexpr
    missing = [one for one in missing if one.is_constexpr == is_constant]
    listed = ", ".join(f"`{one.name}`" for one in missing)
    if is_constant:
        return f"{listed}: give defines={{'{first}': …}}, or -D {first}=… in the command"
    return f"{listed}: give {many(len(missing), 'more argument')}"
