"""Edits that load and store four neighbouring elements at once: float4 in place of four floats."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from analysis.timing.predicted import Effect
from toolkit.machine_code.source_tree import KernelSource, PointerParameter, line_of, walk
from toolkit.remedies.edit import Edit, Replacement
from toolkit.remedies.facts import Facts

WIDTH = 4
VECTORS = {"float": "float4", "int": "int4", "unsigned": "uint4"}
FIELDS = "xyzw"
EFFECTS = (
    Effect.UNCOALESCED,
    Effect.L1_WAVEFRONTS,
    Effect.L1_LATENCY,
    Effect.L2_LATENCY,
    Effect.DRAM_LATENCY,
    Effect.OTHER_INSTRUCTIONS,
    Effect.DEPENDENCES,
)


@dataclass(frozen=True, kw_only=True)
class Loop:
    """`for (int k = 0; k < 4; k++)`: the statement, its variable and its body."""

    statement: Node
    variable: str
    body: Node


@dataclass(frozen=True, kw_only=True)
class Elements:
    """Accesses to `pointer[base + k]` for the k of a loop, or for each k from 0 to 3."""

    pointer: PointerParameter
    base: str
    accesses: tuple[tuple[Node, str], ...]  # each with its k


def vectorized(facts: Facts) -> Iterator[Edit]:
    """One edit for all loops and statements that access four neighbours."""
    source = facts.source
    found, lines, names = list[Replacement](), set[int](), list[str]()
    for loop in _loops(source):
        for elements in _of_loop(source, loop):
            replacements = _loop_edit(source, loop, elements, len(names))
            if replacements:
                found += replacements
                names.append(elements.pointer.name)
                lines |= {line_of(node) for node, _ in elements.accesses}
    for statement, elements in _of_statements(source):
        found += _statement_edit(source, statement, elements, len(names))
        names.append(elements.pointer.name)
        lines |= {line_of(node) for node, _ in elements.accesses}
    if names:
        kind = VECTORS[source.pointers[names[0]].type]
        unique = list(dict.fromkeys(names))
        yield Edit(
            effect=facts.worst(EFFECTS),
            lines=tuple(sorted(lines)),
            title=f"{kind} accesses to {', '.join(unique)}, which must be aligned to 16 bytes",
            replacements=_joined(found),
        )


def _loops(source: KernelSource) -> Iterator[Loop]:
    for one in source.nodes("for_statement", source.body):
        begin, test, step, body = (
            one.child_by_field_name(name) for name in ("initializer", "condition", "update", "body")
        )
        if begin is None or test is None or step is None or body is None:
            continue
        start = re.fullmatch(r"(?:int|unsigned)(?: int)? (\w+) = 0;", source.written(begin))
        if start is None:
            continue
        name = start[1]
        left, right = test.child_by_field_name("left"), test.child_by_field_name("right")
        is_below = bool(re.fullmatch(rf"{name}\s*<[^=].*", source.written(test)))
        is_step = source.written(step) in (f"{name}++", f"++{name}", f"{name} += 1")
        if left is None or right is None or not is_below or not is_step:
            continue
        if source.number(right) == WIDTH and not source.is_assigned(name, body):
            yield Loop(statement=one, variable=name, body=body)


def _of_loop(source: KernelSource, loop: Loop) -> Iterator[Elements]:
    """Accesses of each pointer in a loop, if all have one base that the loop does not change."""
    for pointer in source.pointers.values():
        if pointer.type not in VECTORS:
            continue
        uses = [one for one in source.uses(pointer.name) if _is_inside(one, loop.body)]
        accesses = []
        for use in uses:
            indices = source.subscripts(use, 1)
            base = _base(source.written(indices[0]), loop.variable) if indices else None
            accesses.append((source.element(use, 1) if indices else use, base))
        bases = {base for _, base in accesses}
        base = bases.pop() if len(bases) == 1 else None
        if base is None or not _is_steady(source, base, loop.body):
            continue
        yield Elements(
            pointer=pointer,
            base=base,
            accesses=tuple((node, loop.variable) for node, _ in accesses),
        )


def _base(index: str, variable: str) -> str | None:
    """`base` of an index `base + k` or `k + base`."""
    match = re.fullmatch(rf"(?P<a>.*\S)\s*\+\s*{variable}|{variable}\s*\+\s*(?P<b>\S.*)", index)
    base = (match["a"] or match["b"]) if match else None
    if base is None or re.search(rf"\b{variable}\b", base) or not _is_whole(base):
        return None
    return base


def _is_whole(base: str) -> bool:
    """True if brackets are closed and no operator binds weaker than `+`."""
    depth = 0
    for character in base:
        depth += (character in "([") - (character in ")]")
        if depth < 0 or (depth == 0 and character in "&|^?<>=,"):
            return False
    return depth == 0


def _is_steady(source: KernelSource, base: str, body: Node) -> bool:
    """True if nothing changes the names in an index, and it calls nothing."""
    names = re.findall(r"[A-Za-z_]\w*", base)
    declared = {
        source.written(one)
        for one in walk(body)
        if one.type == "identifier" and one.parent and "declarator" in one.parent.type
    }
    return (
        not re.search(r"\w\s*\(|\+\+|--", base)
        and not declared & set(names)
        and not any(source.is_assigned(name, body) for name in names)
    )


def _is_inside(node: Node, outer: Node) -> bool:
    return outer.start_byte <= node.start_byte and node.end_byte <= outer.end_byte


def _loop_edit(
    source: KernelSource, loop: Loop, elements: Elements, number: int
) -> list[Replacement]:
    """A vector before the loop for what it reads, or one behind it for what it writes."""
    pointer, kind = elements.pointer, VECTORS[elements.pointer.type]
    name, stores = f"{pointer.name}_{number}", [_is_stored(n) for n, _ in elements.accesses]
    if loop.statement.parent is None or loop.statement.parent.type != "compound_statement":
        return []
    start, end = loop.statement.start_byte, loop.statement.end_byte
    if not any(stores):
        listed = ", ".join(f"{name}_vector.{field}" for field in FIELDS)
        before = (
            f"const {kind} {name}_vector = {_vector(pointer, elements.base, is_const=True)};"
            f"{_break(source, start)}const {pointer.type} {name}[{WIDTH}] = {{{listed}}};"
        )
        around = [Replacement(start=start, end=start, text=f"{before}{_break(source, start)}")]
    elif all(stores) and len(stores) == 1 and _is_always(elements.accesses[0][0], loop.body):
        listed = ", ".join(f"{name}[{k}]" for k in range(WIDTH))
        after = f"{_vector(pointer, elements.base)} = make_{kind}({listed});"
        around = [
            Replacement(
                start=start,
                end=start,
                text=f"{pointer.type} {name}[{WIDTH}];{_break(source, start)}",
            ),
            Replacement(start=end, end=end, text=f"{_break(source, start)}{after}"),
        ]
    else:
        return []
    return around + [
        Replacement(start=node.start_byte, end=node.end_byte, text=f"{name}[{k}]")
        for node, k in elements.accesses
    ]


def _vector(pointer: PointerParameter, base: str, *, is_const: bool = False) -> str:
    const = "const " if is_const or pointer.is_const else ""
    return f"*reinterpret_cast<{const}{VECTORS[pointer.type]} *>(&{pointer.name}[{base}])"


def _break(source: KernelSource, start: int) -> str:
    """Line break with the indentation of a statement."""
    line = source.text[source.text.rfind(b"\n", 0, start) + 1 : start]
    return "\n" + line.decode() if not line.strip() else " "


def _is_stored(element: Node) -> bool:
    """True if an element is the target of `=`."""
    parent = element.parent
    return (
        parent is not None
        and "assignment" in parent.type
        and parent.child_by_field_name("left") == element
    ) or (parent is not None and parent.type in ("update_expression", "pointer_expression"))


def _is_always(element: Node, body: Node) -> bool:
    """True if an assignment with `=` is a statement of the body itself, under no condition."""
    parent = element.parent
    if parent is None or parent.type != "assignment_expression" or _operator(parent) != b"=":
        return False
    statement = parent.parent
    if statement is None or statement.type != "expression_statement":
        return False
    return body in (statement, statement.parent)


def _operator(node: Node) -> bytes | None:
    operator = node.child_by_field_name("operator")
    return operator.text if operator is not None else None


def _of_statements(source: KernelSource) -> Iterator[tuple[Node, Elements]]:
    """Loads of four neighbours in the statements of one block, and the first of them."""
    for block in walk(source.body):
        if block.type not in ("compound_statement", "for_statement"):
            continue
        for pointer in source.pointers.values():
            if pointer.type not in VECTORS or _is_written(source, pointer):
                continue
            groups = dict[str, list[tuple[Node, int, Node]]]()
            for use in source.uses(pointer.name):
                statement = _statement_in(block, use)
                indices = source.subscripts(use, 1)
                if statement is None or indices is None:
                    continue
                base, offset = _offset(source.written(indices[0]))
                if base and _is_steady_after(source, base, block, statement):
                    groups.setdefault(base, []).append((source.element(use, 1), offset, statement))
            for base, group in groups.items():
                if {offset for _, offset, _ in group} == set(range(WIDTH)):
                    first = min((one for _, _, one in group), key=lambda one: one.start_byte)
                    accesses = tuple((node, FIELDS[offset]) for node, offset, _ in group)
                    yield first, Elements(pointer=pointer, base=base, accesses=accesses)


def _statement_in(block: Node, use: Node) -> Node | None:
    """The plain statement of a block that a use is in; None if a loop or condition is between."""
    node = use
    while node.parent is not None and node.parent != block:
        node = node.parent
        if node.type in ("compound_statement", "for_statement", "if_statement", "while_statement"):
            return None
        if node.type in ("conditional_expression", "lambda_expression"):
            return None
    plain = ("declaration", "expression_statement")
    if block.type == "for_statement" and block.child_by_field_name("body") != node:
        return None
    return node if node.parent == block and node.type in plain else None


def _offset(index: str) -> tuple[str | None, int]:
    """Base and offset of an index `base + 2`; (base, 0) of any other."""
    match = re.fullmatch(r"(?P<base>.*\S)\s*\+\s*(?P<offset>\d+)", index)
    base, offset = (match["base"], int(match["offset"])) if match else (index, 0)
    return (base if _is_whole(base) else None), offset


def _is_steady_after(source: KernelSource, base: str, block: Node, statement: Node) -> bool:
    names = re.findall(r"[A-Za-z_]\w*", base)
    later = [one for one in block.named_children if one.start_byte >= statement.start_byte]
    return not re.search(r"\w\s*\(|\+\+|--", base) and not any(
        source.is_assigned(name, one) for name in names for one in later
    )


def _is_written(source: KernelSource, pointer: PointerParameter) -> bool:
    for use in source.uses(pointer.name):
        if source.subscripts(use, 1) is None or _is_stored(source.element(use, 1)):
            return True
    return False


def _statement_edit(
    source: KernelSource, statement: Node, elements: Elements, number: int
) -> list[Replacement]:
    pointer, kind = elements.pointer, VECTORS[elements.pointer.type]
    name, start, end = f"{pointer.name}_{number}", statement.start_byte, statement.end_byte
    before = f"const {kind} {name} = {_vector(pointer, elements.base, is_const=True)};"
    before += _break(source, start)
    fields = [
        Replacement(start=node.start_byte, end=node.end_byte, text=f"{name}.{field}")
        for node, field in elements.accesses
    ]
    is_body = statement.parent is not None and statement.parent.type == "for_statement"
    if not is_body:
        return [Replacement(start=start, end=start, text=before), *fields]
    # two statements are the body of a loop now
    opened = Replacement(start=start, end=start, text=f"{{ {before}")
    return [opened, Replacement(start=end, end=end, text=" }"), *fields]


def _joined(found: Sequence[Replacement]) -> tuple[Replacement, ...]:
    """Insertions at one place as one."""
    inserted, others = dict[int, str](), list[Replacement]()
    for one in found:
        if one.start == one.end:
            inserted[one.start] = inserted.get(one.start, "") + one.text
        else:
            others.append(one)
    return (*(Replacement(start=at, end=at, text=text) for at, text in inserted.items()), *others)
