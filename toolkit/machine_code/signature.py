"""Names of a kernel's parameters and, where they are plain, their types, from its source.

Machine code has only the number of bytes of a parameter. A type that is not plain (of a template, a
macro, a typedef) is left open: these functions never guess.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

# "bfloat16" and FP8 are kinds of their own: their bits are those of no other type of their size.
Kind = Literal["integer", "float", "bfloat16", "float8_e4m3fn", "float8_e5m2"]

_COMMENT_OR_TEXT = re.compile(
    r"//[^\n]*|/\*.*?\*/|R\"(\w*)\(.*?\)\1\"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL
)
_WORD_BEFORE_PARENTHESIS = re.compile(r"([A-Za-z_]\w*)\s*\(")
_NO_TYPE = re.compile(
    r"\b(?:const|volatile|register|struct|__restrict__|__restrict|__grid_constant__)\b"
    r"|__align__\s*\([^)]*\)|__attribute__\s*\(\(.*?\)\)"
)

_VARIABLE = re.compile(r"\b__(?:constant|device|managed)__\b")
_QUALIFIERS = re.compile(
    r"\b(?:__constant__|__device__|__managed__|static|extern|inline|constexpr)\b|__align__\s*\(\d+\)"
)

_INTEGERS = {
    1: "bool char uchar int8_t uint8_t __nv_fp8_storage_t",
    2: "short ushort int16_t uint16_t",
    4: "int uint unsigned signed int32_t uint32_t",
    8: "size_t ptrdiff_t int64_t uint64_t intptr_t uintptr_t",
}
_FLOATS = {2: "half __half", 4: "float", 8: "double"}
_PLAIN: dict[str, tuple[Kind, int]] = {
    name: ("integer", size) for size, names in _INTEGERS.items() for name in names.split()
}
_PLAIN |= {name: ("float", size) for size, names in _FLOATS.items() for name in names.split()}
_PLAIN |= dict.fromkeys(("__nv_bfloat16", "nv_bfloat16"), ("bfloat16", 2))
_PLAIN |= {"__nv_fp8_e4m3": ("float8_e4m3fn", 1), "__nv_fp8_e5m2": ("float8_e5m2", 1)}
# float4 and its like, and complex numbers: arrays of their elements
_VECTORS: dict[str, tuple[Kind, int, int]] = {
    f"{name}{count}": (*_PLAIN[name], count)
    for name in ("char", "uchar", "short", "ushort", "int", "uint", "float", "double", "half")
    for count in (1, 2, 3, 4)
}
_VECTORS |= {
    name: (*_PLAIN[of], 2)
    for of, names in (
        ("half", "__half2"),
        ("__nv_bfloat16", "__nv_bfloat162 nv_bfloat162"),
        ("float", "cuComplex cuFloatComplex complex<float>"),
        ("double", "cuDoubleComplex complex<double>"),
    )
    for name in names.split()
}
_VECTORS |= {
    f"__nv_fp8x{count}_{name}": (*_PLAIN[f"__nv_fp8_{name}"], count)
    for name in ("e4m3", "e5m2")
    for count in (2, 4)
}


@dataclass(frozen=True, kw_only=True)
class Declared:
    """A parameter as it is declared.

    `kind` and `size` (bytes) are those of the value or, of a pointer, of what it points to; None
    where the type is not a plain one. `components` is 4 of a pointer to float4. `text` is the
    declaration, `name` None where it has none. `argument` is the position of the user's argument
    where a front end adds parameters. `was_resolved`: the source writes the type by the name of a
    macro, a typedef or a template parameter.
    """

    text: str
    name: str | None
    pointer: bool
    kind: Kind | None = None
    size: int | None = None
    components: int = 1
    argument: int | None = None
    was_resolved: bool = False

    @property
    def is_array_of_pointers(self) -> bool:
        """True for a pointer to pointers, such as `float **rows` or `float *rows[]`."""
        stars = re.findall(r"\*", re.sub(r"<.*>|\(.*\)", "", self.text))
        return self.pointer and len(stars) + ("[" in self.text) > 1

    @property
    def dtype(self) -> str | None:
        """Name of the plain type in NumPy or ml_dtypes, None of any other."""
        if self.kind is None or self.size is None:
            return None
        if self.kind not in ("integer", "float"):
            return self.kind
        if self.kind == "float":
            return f"float{8 * self.size}"
        unsigned = bool(re.search(r"\b(?:unsigned|uchar|ushort|uint|size_t)", self.text))
        return f"{'u' * unsigned}int{8 * self.size}"


@dataclass(frozen=True, kw_only=True)
class DeclaredVariable:
    """A `__constant__`, `__device__` or `__managed__` variable as it is declared.

    `text` is the declaration. `dtype` is NumPy's name of its plain type or that of its elements,
    None of any other. `is_initialized`: it has an initial value.
    """

    text: str
    dtype: str | None
    is_array: bool
    is_initialized: bool


def declared_variables(source: str) -> dict[str, DeclaredVariable]:
    """The variables in global and constant memory that `source` declares, by name.

    Names without namespaces; those that are declared twice with different types are left out.
    """
    found: dict[str, list[DeclaredVariable]] = {}
    plain = _COMMENT_OR_TEXT.sub(lambda match: '""' if match[0][0] in "R\"'" else " ", source)
    for start in _VARIABLE.finditer(plain):
        statement = _statement(_QUALIFIERS.sub(" ", plain[start.end() : start.end() + 10_000]))
        if statement is None:
            continue
        first, *others = _split(statement)
        base = re.match(r"[\w:\s<>]*[\s>](?=[\w*])", first)
        for text in [first, *(f"{base[0] if base else ''}{other}" for other in others)]:
            declaration = re.split(r"[={]", text)[0].strip()
            one = declared(declaration)
            if one.name is not None:
                variable = DeclaredVariable(
                    text=declaration,
                    dtype=None if "*" in declaration.partition("[")[0] else one.dtype,
                    is_array="[" in declaration,
                    is_initialized=declaration != text.strip(),
                )
                found.setdefault(one.name, []).append(variable)
    return {name: each[-1] for name, each in found.items() if len({x.dtype for x in each}) == 1}


def _statement(text: str) -> str | None:
    """The declaration before a semicolon; None of a function."""
    depth = 0
    for at, character in enumerate(text):
        depth += (character == "{") - (character == "}")
        if character == ";" and depth == 0:
            return None if "(" in re.split(r"[={]", text[:at])[0] else text[:at]
        if depth < 0:
            return None
    return None


def unqualified(kernel: str) -> str:
    """Name of a kernel without template arguments and namespaces."""
    return kernel.partition("<")[0].rpartition("::")[2].strip()


def signature(source: str, kernel: str) -> tuple[Declared, ...] | None:
    """The parameters of `kernel` ("scale" or "ns::gemm<128, 64>") as `source` declares them.

    None where the source does not hold it, or holds different ones of that name.
    """
    name = unqualified(kernel)
    found = {parameters for found_name, parameters in _kernels(source) if found_name == name}
    return found.pop() if len(found) == 1 else None


def kernel_names(source: str) -> list[str]:
    """The names of the kernels that `source` defines or declares, in order, each once."""
    return list(dict.fromkeys(name for name, _ in _kernels(source)))


def template_names(source: str) -> list[str]:
    """The names of the kernels that `source` declares as templates, in order, each once."""
    found = dict.fromkeys(name for name, _, is_template in _declarations(source) if is_template)
    return list(found)


def _kernels(source: str) -> Iterator[tuple[str, tuple[Declared, ...]]]:
    for name, parameters, _ in _declarations(source):
        yield name, tuple(map(declared, _split(parameters)))


def _declarations(source: str) -> Iterator[tuple[str, str, bool]]:
    """Name and parameters of each kernel, and whether it is a template."""
    plain = _COMMENT_OR_TEXT.sub(lambda match: '""' if match[0][0] in "R\"'" else " ", source)
    for start in re.finditer(r"\b__global__\b", plain):
        found = _name_and_parameters(plain, start.end())
        if found is not None:
            before = max(plain.rfind(mark, 0, start.start()) for mark in ";}{")
            yield *found, "template" in plain[before + 1 : start.start()]


def _name_and_parameters(text: str, start: int) -> tuple[str, str] | None:
    """The first name with a parenthesis from `start` on that is no attribute of CUDA's."""
    while match := _WORD_BEFORE_PARENTHESIS.search(text, start):
        end = _closing(text, match.end())
        if end is None or re.search(r"[;{}]", text[start : match.start()]):
            return None
        if not match[1].startswith("__"):  # __launch_bounds__(256)
            return match[1], text[match.end() : end]
        start = end + 1
    return None


def _closing(text: str, start: int) -> int | None:
    """Position of the parenthesis that closes the one opened before `start`."""
    depth = 1
    for match in re.compile(r"[()]").finditer(text, start):
        depth += 1 if match[0] == "(" else -1
        if depth == 0:
            return match.start()
    return None


def _split(parameters: str) -> list[str]:
    """The declarations between commas that stand in no bracket."""
    parts, depth = [""], 0
    for character in parameters:
        depth += (character in "(<[{") - (character in ")>]}")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    stripped = [" ".join(part.split()) for part in parts]
    return [] if stripped in ([""], ["void"]) else stripped


def declared(text: str) -> Declared:
    """A parameter by the text of its declaration, such as "const float *x"."""
    bare = _NO_TYPE.sub(" ", text.partition("=")[0])
    match = re.fullmatch(r"(?P<type>.*?[\s*&>])(?P<name>[A-Za-z_]\w*)\s*(?P<array>(\[.*\])*)", bare)
    if match is None or match["name"] in _PLAIN:
        type_text, name, array = bare, None, ""
    else:
        type_text, name, array = match["type"], match["name"], match["array"]
    stars = type_text.count("*") + bool(array)
    kind, size, components = _plain_type(type_text.replace("*", " "), pointed_to=bool(stars))
    if stars > 1:
        kind, size, components = None, None, 1
    return Declared(
        text=text, name=name, pointer=bool(stars), kind=kind, size=size, components=components
    )


def _plain_type(text: str, *, pointed_to: bool) -> tuple[Kind | None, int | None, int]:
    words = re.sub(r"\b(?:cuda::)?(?:std|thrust)::|(?<=<)\s+|\s+(?=[<>])", "", text).split()
    if words.count("long"):
        # Linux: 64 bits like `long long`; `long double` is 64 bits on a device
        known = set(words) <= {"long", "int", "unsigned", "signed"}
        return ("integer", 8, 1) if known else (None, None, 1)
    sized = [word for word in words if word not in ("unsigned", "signed", "int")]
    name = ""
    if len(sized) == 1:
        name = sized[0]
    elif words and not sized:
        name = "int"
    if name in _PLAIN:
        return *_PLAIN[name], 1
    return _VECTORS.get(name, (None, None, 1)) if pointed_to else (None, None, 1)
