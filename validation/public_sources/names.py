"""The name with which a kernel is compiled: an instantiation, where it is a template."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence

from tree_sitter import Node

from toolkit.launch.host_code import HostLaunch
from toolkit.machine_code.device_side import DeviceSide
from toolkit.machine_code.left_out import ItemKind
from validation.public_sources.launched import Launched

_LITERAL = re.compile(
    r"\s*(?:-?\d+[uU]?|true|false|(?:unsigned |signed )?(?:int|char|short|long)|float"
    r"|double|half|__half|uint|float[1234]|int[1234])\s*"
)
# Of a number; the cast of an enumerator stays, since a number alone is none.
_CAST = re.compile(r"\((?:unsigned )?(?:int|long|short|char|bool)\)(?=-?\d)")
_WORD = re.compile(r"[A-Za-z_]\w*")
_TYPES = ("class", "typename")
_DEFAULTS = {"bool": "true"}
_NUMBERS = ("32", "8")  # sizes of tiles and blocks that most templates take


def candidates(
    kernel: Launched, side: DeviceSide, symbols: Sequence[str], launches: Sequence[HostLaunch]
) -> Iterator[str]:
    """Names to try, the likeliest first: those in machine code, in launches, then guesses."""
    if not kernel.is_template:
        yield kernel.name
        return
    yield from _in_machine_code(kernel.name, symbols)
    text = side.contents[side.file].decode()
    yield from (one.name for one in launches if one.name)
    yield from (
        form for form in (_resolved(one, text) for one in kernel.forms) if _is_literal(form)
    )
    yield from (form for form in kernel.forms if "<" in form)
    yield from _guesses(kernel.name, side)


def _in_machine_code(name: str, symbols: Sequence[str]) -> Iterator[str]:
    """`scale<float, 4>` of a symbol that c++filt reads as `void scale<float, 4>(float*)`."""
    for text in readable(symbols):
        start = re.search(rf"\b{name}<", text)
        if start is not None:
            depth = 0
            for at in range(start.end() - 1, len(text)):
                depth += (text[at] == "<") - (text[at] == ">")
                if depth == 0:
                    yield _CAST.sub("", text[start.start() : at + 1])
                    break


def readable(symbols: Iterable[str]) -> list[str]:
    """The symbols as C++ has them; none without c++filt."""
    tool = shutil.which("cu++filt") or shutil.which("c++filt")
    if tool is None:
        return []
    ran = subprocess.run(
        [tool], input="\n".join(symbols), capture_output=True, text=True, check=True
    )
    return ran.stdout.splitlines()


def _is_literal(form: str) -> bool:
    inside = form.partition("<")[2].rpartition(">")[0]
    return bool(inside) and all(map(_LITERAL.fullmatch, inside.split(",")))


def _resolved(form: str, text: str) -> str:
    """A name in a launch, with the values of constants of the file in place of their names."""
    name, _, arguments = form.partition("<")
    if not arguments:
        return form

    def value(word: re.Match[str]) -> str:
        found = re.search(
            rf"\b{word[0]}\s*=\s*(\d+|true|false)\s*;|#define[ \t]+{word[0]}[ \t]+(\d+)", text
        )
        return (found[1] or found[2]) if found else word[0]

    return f"{name}<" + _WORD.sub(value, arguments)


def _guesses(name: str, side: DeviceSide) -> Iterator[str]:
    for item in side.roots:
        lists = [one for one in item.node.children if one.type == "template_parameter_list"]
        if name.encode() in item.names and lists:
            for number in _NUMBERS:
                arguments = [_guess(one, number, side) for one in lists[0].named_children]
                yield f"{name}<{', '.join(filter(None, arguments))}>"


def _guess(parameter: Node, number: str, side: DeviceSide) -> str:
    if parameter.type.startswith("optional") or parameter.type == "comment":
        return ""
    text = (parameter.text or b"").decode()
    if parameter.type == "type_parameter_declaration" or text.startswith(_TYPES):
        name = text.split()[-1]  # `Payoff` may be the class PayoffCall
        own = (one.name for one in side.items if one.kind is ItemKind.TYPE)
        found = (one for one in own if len(name) > 2 and one.startswith(name) and one != name)
        return next(found, "float")
    return _DEFAULTS.get(text.split()[0], number)
