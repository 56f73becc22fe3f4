"""Host code of a source as parse trees: what is declared, assigned and called, and where.

The source and the headers beside it are read in their order. Directives are followed: what an
`#if` leaves out is not there.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tree_sitter import Node

from toolkit.launch.host_declarations import (
    HostCall,
    HostFunction,
    HostVariable,
    SourcePlace,
    Use,
    Write,
)
from toolkit.launch.host_directives import PREDEFINED, Directives, Macro
from toolkit.launch.host_hidden_changes import (
    attribute_target,
    extracted_names,
    launches_of_macro,
    lent_names,
    target_names,
    written_by_macro,
)
from toolkit.launch.host_lambdas import HostLambda, lambda_of
from toolkit.launch.host_nodes import (
    constructor_arguments,
    is_function_pointer,
    launch_of,
    name_of_callee,
    name_of_declarator,
    outermost_call,
    template_parameters,
    text_of,
    uncast,
    without_comments,
)
from toolkit.machine_code.source_tree import tree_of
from toolkit.store.user_files import read_file

MOST_HEADERS = 64
UNKNOWN_TYPE = "?"  # what a name stands for that is declared in several ways
BLOCKS = ("compound_statement", "translation_unit", "declaration_list", "case_statement")
_SCOPES = (
    *BLOCKS,
    *("for_statement", "for_range_loop", "while_statement", "if_statement"),
    *("function_definition", "lambda_expression", "template_declaration"),
    "field_declaration_list",
)
UNCONDITIONAL = (
    *("expression_statement", "parenthesized_expression", "comma_expression"),
    *("init_declarator", "declaration", "assignment_expression"),
)
_CONDITIONALS = ("preproc_if", "preproc_ifdef", "preproc_elif", "preproc_else", "preproc_elifdef")


# The text and the name of an include, as it is written, and what finds its own includes
Header = Callable[[str], "tuple[str, str, Header] | None"]


@dataclass
class HostUnit:
    """The files of one source; `names` and `texts` are by the number of the file."""

    directives: Directives = field(default_factory=Directives)
    names: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    functions: dict[str, list[HostFunction]] = field(default_factory=lambda: defaultdict(list))
    prototypes: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    calls: list[HostCall] = field(default_factory=list)
    types: dict[str, str] = field(default_factory=dict)  # typedefs and aliases
    structs: dict[str, Node] = field(default_factory=dict)
    struct_files: dict[str, int] = field(default_factory=dict)
    variables: dict[str, list[HostVariable]] = field(default_factory=lambda: defaultdict(list))
    writes: dict[str, list[Write]] = field(default_factory=lambda: defaultdict(list))
    uses: dict[str, list[Use]] = field(default_factory=lambda: defaultdict(list))
    loops: dict[int, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    lambdas: dict[int, list[HostLambda]] = field(default_factory=lambda: defaultdict(list))
    enumerators: dict[str, Node] = field(default_factory=dict)
    _meant: dict[tuple[str, SourcePlace], HostVariable | None] = field(default_factory=dict)

    @property
    def macros(self) -> dict[str, Macro | None]:
        """Macros by their names; None of one that is defined in several ways."""
        return self.directives.macros

    def variable(self, name: str, place: SourcePlace) -> HostVariable | None:
        """The variable that a name means at a place; None if it is not declared in these files."""
        if (name, place) not in self._meant:
            self._meant[name, place] = self._declared_at(name, place)
        return self._meant[name, place]

    def _declared_at(self, name: str, place: SourcePlace) -> HostVariable | None:
        found: HostVariable | None = None
        for one in self.variables.get(name, ()):
            if one.is_global:
                found = found or one
            elif one.place.file == place.file and one.scope[0] <= place.at < one.scope[1]:
                is_before = one.place.at <= place.at
                if is_before and (found is None or found.is_global or found.scope <= one.scope):
                    found = one
        return found

    def function_at(self, place: SourcePlace) -> HostFunction | None:
        """The function that a place is in."""
        every = (one for functions in self.functions.values() for one in functions)
        return next((one for one in every if one.contains(place)), None)

    def writes_of(self, variable: HostVariable) -> list[Write]:
        """Changes of a variable after its declaration, in order."""
        name = variable.name
        found = [one for one in self.writes[name] if self.variable(name, one.place) is variable]
        return sorted(found, key=lambda write: (write.place.file, write.place.at))

    def uses_of(self, variable: HostVariable) -> Iterator[Use]:
        name = variable.name
        return (use for use in self.uses[name] if self.variable(name, use.place) is variable)

    def is_ambiguous(self, variable: HostVariable) -> bool:
        """True if the same scope declares it in several ways, of which directives choose one."""
        same = [
            one
            for one in self.variables[variable.name]
            if (one.is_global, one.scope) == (variable.is_global, variable.scope)
            or (one.is_global and variable.is_global)
        ]
        return len([one for one in same if not text_of(one.declaration).startswith("extern")]) > 1

    def loops_around(self, place: SourcePlace) -> list[tuple[int, int]]:
        return [one for one in self.loops[place.file] if one[0] <= place.at < one[1]]

    # Reading.

    def read(self, text: str, name: str, header: Header) -> HostUnit:
        """Add a file, and the headers that `header` finds."""
        number = len(self.names)
        self.names.append(name)
        self.texts.append(text)
        root = tree_of(text)

        def include(written: str) -> None:
            found = header(written) if len(self.names) < MOST_HEADERS else None
            if found is not None:
                self.read(*found)

        self.directives.follow(root, include)
        for node in self.directives.active(root):
            self._note(node, number)
        return self

    def _note(self, node: Node, file: int) -> None:  # noqa: PLR0912
        for lent in filter(None, lent_names(node, self.structs)):
            place = SourcePlace(file=file, at=node.end_byte - 1)
            self.uses[lent].append(Use(place=place, function="", position=0, is_address=True))
        match node.type:
            case "function_definition":
                self._note_function(node, file)
            case "declaration" | "parameter_declaration" | "optional_parameter_declaration":
                self._note_declaration(node, file)
            case "for_range_loop":
                self._note_declaration(node, file)
                self.loops[file].append((node.start_byte, node.end_byte))
            case "for_statement" | "while_statement" | "do_statement":
                first = node.child_by_field_name("initializer")
                begin = first.end_byte if first is not None else node.start_byte
                self.loops[file].append((begin, node.end_byte))
            case "lambda_expression":
                self.lambdas[file].append(lambda_of(node))
            case "assignment_expression":
                target, value = (node.child_by_field_name(x) for x in ("left", "right"))
                plain = text_of(node.child_by_field_name("operator")) == "="
                self._note_write(target, value if plain else None, node, file)
            case "update_expression":
                self._note_write(node.child_by_field_name("argument"), None, node, file)
            case "binary_expression" if node.children[1].type == ">>":
                self._note_unknown(extracted_names(node), node, file)
            case "call_expression":
                self._note_call(node, file)
                self._note_unknown(written_by_macro(node, self.macros), node, file)
            case "expression_statement" if node.named_children[:1]:
                self._note_unknown(
                    written_by_macro(node.named_children[0], self.macros), node, file
                )
            case "type_definition":
                declarator = node.child_by_field_name("declarator")
                kind = node.child_by_field_name("type")
                if declarator is not None and kind is not None:
                    _note_type(self.types, text_of(declarator), text_of(kind))
                    if kind.type == "struct_specifier":
                        self.structs[text_of(declarator)] = kind
                        self.struct_files[text_of(declarator)] = file
            case "alias_declaration":
                name, kind = (node.child_by_field_name(x) for x in ("name", "type"))
                if name is not None and kind is not None:
                    _note_type(self.types, text_of(name), text_of(kind))
            case "struct_specifier" | "class_specifier":
                name = node.child_by_field_name("name")
                if name is not None and node.child_by_field_name("body") is not None:
                    self.structs[text_of(name)] = node
                    self.struct_files[text_of(name)] = file
            case "enumerator":
                name, value = (node.child_by_field_name(x) for x in ("name", "value"))
                if name is not None and value is not None:
                    self.enumerators[text_of(name)] = value

    def _note_function(self, node: Node, file: int) -> None:
        declarator = node.child_by_field_name("declarator")
        while declarator is not None and declarator.type != "function_declarator":
            declarator = declarator.child_by_field_name("declarator")
        name = declarator.child_by_field_name("declarator") if declarator is not None else None
        if declarator is None or name is None:
            return
        listed = declarator.child_by_field_name("parameters")
        outside = node.parent
        templates = list[str]()
        if outside is not None and outside.type == "template_declaration":
            templates = list(map(template_name, template_parameters(outside)))
        head = text_of(node).partition("{")[0]
        found = HostFunction(
            name=text_of(name).rpartition("::")[2],
            node=node,
            file=file,
            begin=node.start_byte,
            end=node.end_byte,
            parameters=tuple(
                one
                for one in (listed.named_children if listed is not None else ())
                if one.type.endswith("parameter_declaration")
            ),
            templates=tuple(templates),
            is_kernel="__global__" in head,
        )
        self.functions[found.name].append(found)

    def _note_declaration(self, node: Node, file: int) -> None:
        kind = "parameter" if "parameter" in node.type else "variable"
        kind = "element" if node.type == "for_range_loop" else kind
        if kind == "parameter" and not _is_of_function(node):
            return
        scope = _ancestor(node, _SCOPES) if kind != "element" else node
        if scope is None:
            return
        is_global = scope.type in ("translation_unit", "declaration_list")
        for declarator in node.children_by_field_name("declarator"):
            name = name_of_declarator(declarator)
            if name is None:
                continue
            if (
                declarator.type == "function_declarator"
                and not is_function_pointer(declarator)
                and (is_global or constructor_arguments(declarator) is None)
            ):
                listed = text_of(declarator.child_by_field_name("parameters"))
                self.prototypes[name].append(listed)
                continue
            variable = HostVariable(
                name=name,
                declaration=node,
                declarator=declarator,
                place=SourcePlace(file=file, at=declarator.start_byte),
                scope=(scope.start_byte, scope.end_byte),
                is_global=is_global,
                kind=kind,
            )
            self.variables[name].append(variable)

    def _note_write(self, target: Node | None, value: Node | None, node: Node, file: int) -> None:
        path = ""
        while target is not None and target.type != "identifier":
            inner = target.child_by_field_name("argument")
            if target.type == "field_expression":
                path = f".{text_of(target.child_by_field_name('field'))}{path}"
            elif target.type == "parenthesized_expression" and target.named_children:
                inner = target.named_children[0]
            else:  # an element, or what a pointer points to, or one of several variables
                self._note_unknown(target_names(target), node, file)
                return
            target = inner
        if target is None:
            return
        write = Write(
            node=node,
            place=SourcePlace(file=file, at=node.start_byte),
            path=path,
            value=value,
            home=_home(node),
        )
        self.writes[text_of(target)].append(write)

    def _note_unknown(
        self, names: Iterable[str], node: Node, file: int, value: Node | None = None
    ) -> None:
        """Note that variables may have changed, to a value that is not known if it is None."""
        home = _home(node if value is None else outermost_call(node))
        for name in names:
            place = SourcePlace(file=file, at=node.start_byte)
            self.writes[name].append(Write(node=node, place=place, path="", value=value, home=home))

    def _note_call(self, node: Node, file: int) -> None:
        function, arguments = (node.child_by_field_name(x) for x in ("function", "arguments"))
        if function is None or arguments is None:
            return
        launch = launch_of(node)
        name = name_of_callee(function)
        place = SourcePlace(file=file, at=node.start_byte)
        line = node.start_point[0] + 1
        self.calls.append(HostCall(name=name, node=node, place=place, launch=launch, line=line))
        for inner in launches_of_macro(node, self.macros):
            made = name_of_callee(inner.child_by_field_name("function") or inner)
            configuration = launch_of(inner)
            self.calls.append(
                HostCall(name=made, node=inner, place=place, launch=configuration, line=line)
            )
        if name == "cudaDeviceGetAttribute":
            names = attribute_target(without_comments(arguments))
            self._note_unknown(names, node, file, node)  # its value is that of the call
            return
        for position, argument in enumerate(without_comments(arguments)):
            is_address = False
            one = uncast(argument)
            if one.type == "pointer_expression" and text_of(one).startswith("&"):
                is_address = True
                one = one.child_by_field_name("argument") or one
            while one.type == "field_expression" and is_address:
                one = one.child_by_field_name("argument") or one
            if one.type == "identifier" and launch is None:
                use = Use(place=place, function=name, position=position, is_address=is_address)
                self.uses[text_of(one)].append(use)


def host_unit(
    text: str,
    name: str,
    folder: Path | None,
    defines: Mapping[str, object] | None = None,
    folders: Sequence[Path] = (),
) -> HostUnit:
    """The host code of a source, with the headers of its own, beside it or in `folders`."""
    unit = HostUnit()
    given = {k: str(int(x) if isinstance(x, bool) else x) for k, x in (defines or {}).items()}
    for macro, body in (PREDEFINED | given).items():
        unit.macros[macro] = Macro(parameters=None, body=body)
    seen = set[Path]()

    def reader(own: Path | None) -> Header:
        def header(written: str) -> tuple[str, str, Header] | None:
            beside = [own] if own is not None and written.startswith('"') else []
            for place in (*beside, *folders):
                path = (place / written.strip('"<>')).resolve()
                if path in seen:
                    continue
                with suppress(OSError, ValueError):
                    content = read_file(path).decode("utf-8-sig")
                    seen.add(path)
                    return content, path.name, reader(path.parent)
            return None

        return header

    return unit.read(text, name, reader(folder))


def _note_type(types: dict[str, str], name: str, meaning: str) -> None:
    known = types.setdefault(name, meaning)
    types[name] = known if known == meaning else UNKNOWN_TYPE


def template_name(parameter: Node) -> str:
    """The name that a template parameter declares."""
    names = re.findall(r"[A-Za-z_]\w*", text_of(parameter).partition("=")[0])
    return names[-1] if names else ""


def _ancestor(node: Node, kinds: tuple[str, ...]) -> Node | None:
    found = node.parent
    while found is not None and found.type not in kinds:
        found = found.parent
    return found


def _is_of_function(parameter: Node) -> bool:
    """True for a parameter of a definition, not of a prototype or of a type."""
    listed = parameter.parent
    declarator = listed.parent if listed is not None else None
    owner = declarator.parent if declarator is not None else None
    while owner is not None and owner.type.endswith("declarator"):
        owner = owner.parent
    return owner is not None and owner.type in ("function_definition", "lambda_expression")


def _home(node: Node) -> tuple[int, int] | None:
    found = node.parent
    while found is not None and found.type in UNCONDITIONAL:
        found = found.parent
    while found is not None and found.type in _CONDITIONALS:
        found = found.parent
    if found is None or found.type not in BLOCKS:
        return None
    return found.start_byte, found.end_byte
