"""Edits that remove bank conflicts: pad the rows of a shared array, or exchange its columns."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from analysis.timing.predicted import Effect
from toolkit.machine_code.source_tree import SharedArray, line_of, walk
from toolkit.remedies.edit import Edit, Replacement
from toolkit.remedies.facts import Facts

ELEMENT_BYTES = {
    "float": 4,
    "int": 4,
    "unsigned": 4,
    "double": 8,
    "char": 1,
    "half": 2,
    "__half": 2,
}
BANK_BYTES = 4
_SUMS = ("+", "-", "*", "/", "%")


def padded(facts: Facts) -> Iterator[Edit]:
    """Rows of an array of two or more dimensions that are one bank longer."""
    source = facts.source
    for array in _conflicting(facts):
        last = array.extents[-1]
        by = max(1, BANK_BYTES // ELEMENT_BYTES.get(array.type, BANK_BYTES))
        text = source.written(last)
        longer = f"{text if _is_sum(last) else f'({text})'} + {by}"
        written = "".join(f"[{source.written(one)}]" for one in array.extents[:-1])
        yield Edit(
            effect=Effect.CONFLICTS,
            lines=(array.line,),
            title=f"{array.name}{written}[{longer}], pads each row",
            replacements=(Replacement(start=last.start_byte, end=last.end_byte, text=longer),),
        )


def exchanged(facts: Facts) -> Iterator[Edit]:
    """Columns of a row that are exchanged: column XOR row, for a number of columns of 2^n."""
    source = facts.source
    for array in _conflicting(facts):
        columns = source.number(array.extents[-1])
        if len(array.extents) != 2 or not columns or columns & (columns - 1) or columns < 2:
            continue
        rows = source.number(array.extents[0])
        elements = [(use, source.subscripts(use, 2)) for use in source.uses(array.name)]
        replacements, lines = list[Replacement](), set[int]()
        for use, indices in elements:
            if indices is None or any(map(_has_effect, indices)):
                break
            row, column = indices
            text = f"({source.written(row)})"
            if rows is None or rows > columns:
                text = f"({text} & {columns - 1})"
            replacements.append(
                Replacement(
                    start=column.start_byte,
                    end=column.end_byte,
                    text=f"({source.written(column)}) ^ {text}",
                )
            )
            lines.add(line_of(use))
        else:
            if replacements:
                yield Edit(
                    effect=Effect.CONFLICTS,
                    lines=tuple(sorted(lines)),
                    title=f"column ^ row in each access to {array.name}",
                    replacements=tuple(replacements),
                )


def _conflicting(facts: Facts) -> list[SharedArray]:
    """Arrays of two or more dimensions that a line with bank conflicts accesses."""
    source, found = facts.source, []
    for array in source.shared_arrays.values():
        lines = {line for use in source.uses(array.name) for line in _lines(use)}
        if len(array.extents) > 1 and lines & facts.conflicting_lines:
            found.append(array)
    return found


def _lines(use: Node) -> range:
    """Lines of the statement with a use."""
    node = use
    while node.parent is not None and not node.type.endswith(("statement", "declaration")):
        node = node.parent
    return range(line_of(node), int(node.end_point[0]) + 2)


def _is_sum(node: Node) -> bool:
    """True if `+ 1` may follow without brackets."""
    if node.type in ("identifier", "number_literal", "parenthesized_expression"):
        return True
    operator = node.child_by_field_name("operator")
    return operator is not None and operator.type in _SUMS


def _has_effect(node: Node) -> bool:
    kinds = ("call_expression", "update_expression", "assignment_expression")
    return any(one.type in kinds for one in walk(node))
