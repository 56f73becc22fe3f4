"""The forms of instructions in compiled kernels, and those that the simulator does not know."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

from analysis.errors import ToolkitError
from toolkit.machine_code.decode import decode
from toolkit.machine_code.disassemble import disassemble
from toolkit.machine_code.elf import cubin_file
from toolkit.machine_code.instruction import Immediate, Instruction, Special, tensor_core_refusal
from toolkit.sass.isa.registry import lower

_NAME = re.compile(r"`?\([^)]*\)|32@\w+\(.*\)|\$\S+|_Z\w+")
_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:0x[0-9a-f]+|\d[\d.]*(?:e[-+]?\d+)?)(?![\w.])")
_REGISTER = re.compile(r"\b(UR|UP|R|P|B|SB)\d+")
_JUMPS = {"CALL", "RET", "BRA", "JMP", "BRX", "BRXU"}


@dataclass(frozen=True, order=True)
class Form:
    """One way to write an instruction: its opcode with modifiers, and the kinds of its operands.

    Registers and numbers are without their values: "IADD3.X" of "R,P,P,R,c[N][N],R,P,!P".
    """

    words: str
    operands: str

    @property
    def opcode(self) -> str:
        return self.words.partition(".")[0]

    @property
    def is_of_tensor_memory(self) -> bool:
        return tensor_core_refusal(self.opcode) is not None


def taken(folder: Path) -> Census:
    """The census of all cubins below a folder, with as many processes as the machine has cores."""
    paths = sorted(folder.rglob("*.cubin"), key=lambda x: (-x.stat().st_size, x))
    whole = Census()
    with ProcessPoolExecutor() as pool:
        for one in pool.map(_of_file, paths, [str(x.relative_to(folder)) for x in paths]):
            whole.join(one)
    return whole


def _of_file(path: Path, label: str) -> Census:
    found = Census()
    found.add(label, path.read_bytes())
    return found


def form_of(words: str, operands: str) -> Form:
    """Form of an instruction as nvdisasm prints it."""
    text = _NAME.sub("N", operands.replace(".reuse", ""))
    return Form(words, _NUMBER.sub("N", _REGISTER.sub(r"\1", text)))


@dataclass(kw_only=True)
class Census:
    """Kernels by architecture, and the forms seen, each with the kernels that have it.

    `refused` says why the simulator does not execute a form, on one of its architectures or more;
    what is not in it is known.
    """

    kernels: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    seen: dict[Form, set[tuple[str, str]]] = field(default_factory=lambda: defaultdict(set))
    refused: dict[Form, str] = field(default_factory=dict)
    examples: dict[Form, str] = field(default_factory=dict)
    judged: set[tuple[str, Form]] = field(default_factory=set)

    def add(self, label: str, image: bytes) -> None:
        """Count the kernels of a cubin; `label` tells it from other cubins."""
        file = cubin_file(image)
        arch, kernels, kernel = f"sm_{file.capability}", set(file.kernels), ""
        self.kernels[arch] |= {f"{label}:{name}" for name in kernels}
        for function in json.loads(disassemble(image))[1]:
            if function["function-name"] in kernels:
                kernel = f"{label}:{function['function-name']}"
            for form, records in _forms(function["sass-instructions"]).items():
                if (arch, form) not in self.judged:
                    self._judge(form, records, file.capability)
                    self.judged.add((arch, form))
                self.seen[form].add((arch, kernel))

    def join(self, other: Census) -> None:
        """Add what another census counted in other cubins."""
        for arch, kernels in other.kernels.items():
            self.kernels[arch] |= kernels
        for form, users in other.seen.items():
            self.seen[form] |= users
        self.refused = other.refused | self.refused
        self.examples = other.examples | self.examples
        self.judged |= other.judged

    def _judge(self, form: Form, records: list[Mapping[str, str]], capability: int) -> None:
        try:
            self.examples[form] = _lowered(records, capability)
        except ToolkitError as error:
            self.refused[form] = str(error)

    def unknown(self) -> list[tuple[Form, str, int]]:
        """Refused forms without tensor memory, each with its reason and number of kernels."""
        found = [
            (form, reason, len(self.seen[form]))
            for form, reason in self.refused.items()
            if not form.is_of_tensor_memory
        ]
        return sorted(found, key=lambda x: (-x[2], x[0]))

    def forms(self, arch: str) -> list[Form]:
        """Forms that kernels of an architecture have."""
        return sorted(form for known, form in self.judged if known == arch)

    def lines(self) -> list[str]:
        """The census as text: kernels, forms, and what is not executed, ranked by kernels."""
        known = len(self.seen) - len(self.refused)
        theirs = sum(form.is_of_tensor_memory for form in self.refused)
        lines = [
            f"| {arch} | {len(kernels):,} | {len(forms := self.forms(arch)):,} "
            f"| {sum(form in self.refused for form in forms)} |"
            for arch, kernels in sorted(self.kernels.items(), key=lambda x: int(x[0][3:]))
        ]
        lines.append(
            f"{len({form.words for form in self.seen}):,} opcodes with modifiers in "
            f"{len(self.seen):,} forms; {known:,} are executed, {theirs:,} are of tensor memory"
        )
        for form, reason, kernels in self.unknown():
            archs = " ".join(sorted({arch for arch, _ in self.seen[form]}))
            lines.append(
                f"{kernels:>5} {form.words} {form.operands} ({archs}): {reason.rpartition(': ')[2]}"
            )
        return lines


def _forms(records: Iterable[Mapping[str, str]]) -> dict[Form, list[Mapping[str, str]]]:
    """An example of each form, behind the reduction that gave the result that it may read."""
    found: dict[Form, list[Mapping[str, str]]] = {}
    reduction: list[Mapping[str, str]] = []
    for record in records:
        words = record["opcode"]
        form = form_of(words, record.get("operands", ""))
        if form not in found:
            found[form] = [*reduction, record]
        if words.startswith("BAR.RED"):
            reduction = [record]
    return found


def _lowered(records: list[Mapping[str, str]], capability: int) -> str:
    """Text of the last instruction, if the simulator executes it; raises ToolkitError if not."""
    function = {"function-name": "", "start": 0, "sass-instructions": records}
    (decoded,) = decode(json.dumps([{}, [function]]))
    instructions = tuple(map(_placed, decoded.instructions))
    lower(instructions, capability)
    return instructions[-1].text


def _placed(instruction: Instruction) -> Instruction:
    """A jump to a symbol has a target that is an address."""
    if instruction.opcode not in _JUMPS:
        return instruction
    operands = tuple(
        Immediate(text="0x0") if isinstance(x, Special) else x for x in instruction.operands
    )
    return replace(instruction, operands=operands)
