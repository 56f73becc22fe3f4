"""Operands from their text and back; instructions from recorded and from fresh disassemblies."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.errors import ToolkitError, UnsupportedError
from tests.cubins import cubin_of
from tests.probe import parse_operands
from tests.processes import said
from tests.toolkit.machine_code.decode_snapshots import (
    ARCHITECTURES,
    SOURCE,
    disassembly,
    recorded,
)
from toolkit.machine_code.decode import (
    OperandError,
    decode,
    parse_guard,
    parse_operand,
    split_operands,
)
from toolkit.machine_code.disassemble import disassembler
from toolkit.machine_code.instruction import (
    INSTRUCTION_BYTES,
    PT,
    RZ,
    Address,
    Constant,
    Immediate,
    Instruction,
    Register,
    SourceLine,
    Special,
)

FRESH = ("sm_75", "sm_90", "sm_120")


def r(index, *suffix, **modifiers):
    return Register(file="R", index=index, suffix=suffix, **modifiers)


def ur(index):
    return Register(file="UR", index=index)


def printed(*instructions, start=0, name="kernel"):
    """Output of nvdisasm for these instructions."""
    function = {"function-name": name, "start": start, "sass-instructions": list(instructions)}
    return json.dumps([{"SchemaVersion": {}}, [function]])


def only(text):
    ((instruction,),) = (function.instructions for function in decode(text))
    return instruction


# Operands.


@pytest.mark.parametrize(
    ("text", "operand"),
    [
        ("R4.reuse", r(4)),
        ("-|R4|.reuse", r(4, negate=True, absolute=True)),
        ("-|R4|.H1_H1", r(4, "H1_H1", negate=True, absolute=True)),
        ("R4.H0_H0.reuse", r(4, "H0_H0")),
        ("R18.B1", r(18, "B1")),
        ("!PT", Register(file="P", index=PT, invert=True)),
        ("UP3", Register(file="UP", index=3)),
        ("B0", Register(file="B", index=0)),
        ("1.5", Immediate(text="1.5")),
        ("-1.00000001504746621988e+30", Immediate(text="-1.00000001504746621988e+30")),
        ("+INF", Immediate(text="+INF")),
        ("-QNAN", Immediate(text="-QNAN")),
        ("|c[0x0][0x168]|", Constant(bank=0, offset=0x168, absolute=True)),
        ("c[0x4][RZ]", Constant(bank=4, offset=0, base=r(RZ))),
        ("c[0x2][R4+-0x8]", Constant(bank=2, offset=-8, base=r(4))),
        ("cx[UR4][0x10]", Constant(bank=0, offset=0x10, bank_register=ur(4))),
        ("[R2.64+UR4+0x10]", Address(registers=(r(2, "64"), ur(4)), offset=16)),
        ("[R8.X4+0x80]", Address(registers=(r(8, "X4"),), offset=128)),
        ("[0x40]", Address(registers=(), offset=64)),
        ("desc[UR6][R22.64]", Address(registers=(r(22, "64"),), offset=0, descriptor=ur(6))),
        ("SR_TID.X", Special(name="SR_TID.X")),
        ("1D", Special(name="1D")),
        ("{2,1}", Special(name="{2,1}")),
        ("$__internal_0_$__cuda_sm20_div_u64", Special(name="$__internal_0_$__cuda_sm20_div_u64")),
        ("32@lo((k + 0x90))", Special(name="32@lo((k + 0x90))")),
    ],
)
def test_an_operand_is_read_and_printed_back(text, operand):
    assert parse_operand(text) == operand
    assert str(operand) == text.replace(".reuse", "")


@pytest.mark.parametrize(
    "text", ["gdesc[UR4]", "[R2+gdesc]", "c[0x0]", "R2 R3", "", "c[0x0][R2+R3]"]
)
def test_another_form_is_refused(text):
    with pytest.raises(OperandError):
        parse_operand(text)


@pytest.mark.parametrize(
    ("text", "operands"),
    [
        ("", ()),
        ("R1,c[0x0][0x28]", ("R1", "c[0x0][0x28]")),
        ("R21,desc[UR6][R22.64]", ("R21", "desc[UR6][R22.64]")),
        ("[R5][R6.64]", ("[R5]", "[R6.64]")),  # LDGSTS of sm_8x
        ("[R5+0x800][R6.64+0x600],P0", ("[R5+0x800]", "[R6.64+0x600]", "P0")),
        ("[R5]desc[UR4][R6.64]", ("[R5]", "desc[UR4][R6.64]")),
        # LDGSTS before nvdisasm 13.2, without and with a predicate
        ("desc[UR8][R28.64+0x40][R23]", ("[R23]", "desc[UR8][R28.64+0x40]")),
        ("desc[UR8][R28.64],P2[R23+0x80]", ("[R23+0x80]", "desc[UR8][R28.64]", "P2")),
        ("desc[UR8][R28.64],!PT[R23]", ("[R23]", "desc[UR8][R28.64]", "!PT")),
        ("P3[R17+0x80][R24.64]", ("[R17+0x80]", "[R24.64]", "P3")),
        ("!PT[R19][R16.64+0x600]", ("[R19]", "[R16.64+0x600]", "!PT")),
        ("R12[R3.X4]", ("R12", "[R3.X4]")),  # before nvdisasm 13.5
        ("PT,R2[R2.64],R13", ("PT", "R2", "[R2.64]", "R13")),
        ("RZ[UR5],R0", ("RZ", "[UR5]", "R0")),
        ("SB0,0x0,{2,1}", ("SB0", "0x0", "{2,1}")),
        ("R8,RZ,+QNAN ,P0", ("R8", "RZ", "+QNAN", "P0")),
    ],
)
def test_operands_are_told_apart(text, operands):
    assert split_operands(text) == operands


def registers(*files):
    """Registers as they stand in brackets: without signs."""
    return st.builds(
        Register,
        file=st.sampled_from(files),
        index=st.integers(0, 63),
        suffix=st.sampled_from([(), ("64",), ("X4",), ("U32",)]),
    )


SIGNS = {"negate": st.booleans(), "absolute": st.booleans(), "invert": st.booleans()}
OFFSETS = st.integers(-(2**24), 2**24)
OPERANDS = st.one_of(
    st.builds(
        Register,
        file=st.sampled_from(["R", "UR"]),
        index=st.integers(0, 255),
        suffix=st.sampled_from([(), ("H0_H0",), ("64",), ("B1", "X8")]),
        **SIGNS,
    ),
    st.builds(
        Register, file=st.sampled_from(["P", "UP"]), index=st.integers(0, 7), invert=st.booleans()
    ),
    st.builds(
        Constant,
        bank=st.integers(0, 17),
        offset=OFFSETS,
        base=st.none() | registers("R", "UR"),
        **SIGNS,
    ),
    st.builds(
        Constant, bank=st.just(0), offset=OFFSETS, bank_register=st.builds(ur, st.integers(0, 62))
    ),
    st.builds(
        Address,
        registers=st.lists(registers("R", "UR"), max_size=2).map(tuple),
        offset=OFFSETS,
        descriptor=st.none() | st.builds(ur, st.integers(0, 62)),
    ),
    st.builds(Immediate, text=st.integers(-(2**31), 2**32 - 1).map(hex)),
)


@given(st.lists(OPERANDS, min_size=1, max_size=6))
def test_whatever_is_printed_is_read_as_the_same(operands):
    assert parse_operands(",".join(map(str, operands))) == tuple(operands)


def test_numbers_are_read_as_what_the_opcode_wants():
    assert parse_operand("-0x4").integer == -4
    assert parse_operand("0.5").number == 0.5
    assert parse_operand("-INF").number == float("-inf")
    assert parse_operand("+SNAN").number != parse_operand("+SNAN").number
    with pytest.raises(ValueError, match=r"1\.5"):
        parse_operand("1.5").integer  # noqa: B018


# Instructions.


def test_an_instruction_has_all_that_is_printed():
    source = SourceLine(file="k.cu", line=7)
    text = printed(
        {"opcode": "NOP"},
        {"predicate": "@!P3", "opcode": "LDG.E.128.CONSTANT", "operands": "R4,[R2.64+0x10]"},
        start=0x80,
    )
    (function,) = decode(text, sources={0x90: source})
    assert function.name == "kernel"
    nop, load = function.instructions
    assert nop == Instruction(
        address=0x80, opcode="NOP", modifiers=(), operands=(), guard=None, text="NOP"
    )
    assert load == Instruction(
        address=0x90,  # 0x80 + 16
        opcode="LDG",
        modifiers=("E", "128", "CONSTANT"),
        operands=(r(4), Address(registers=(r(2, "64"),), offset=16)),
        guard=Register(file="P", index=3, invert=True),
        text="@!P3 LDG.E.128.CONSTANT R4, [R2.64+0x10]",
        source=source,
    )


@pytest.mark.parametrize(
    ("record", "text"),
    [
        (
            '{"predicate":"PR","opcode":"P2R","operands":"R27,RZ,0x1"}',
            "P2R R27, PR, RZ, 0x1",
        ),
        (
            '{"predicate":"@!P0","predicate":"PR","opcode":"P2R","operands":"R27,@!P0,RZ,0x1"}',
            "@!P0 P2R R27, PR, RZ, 0x1",
        ),
    ],
)
def test_all_predicates_as_an_operand_are_no_guard(record, text):
    whole = printed({"opcode": "here"}).replace('{"opcode": "here"}', record)
    instruction = only(whole)
    guard = re.match(r"@\S+", text)
    assert instruction.text == text
    assert instruction.guard == (parse_guard(guard[0]) if guard else None)
    assert instruction.operands == parse_operands("R27,PR,RZ,0x1")


def test_only_wanted_functions_are_decoded():
    strange = {"opcode": "UTCHMMA", "operands": "gdesc[UR4],tmem[UR8]"}
    functions = (
        json.loads(printed({"opcode": "EXIT"}))[1] + json.loads(printed(strange, name="strange"))[1]
    )
    text = json.dumps([{}, functions])
    assert [f.name for f in decode(text, wanted="kernel".__eq__)] == ["kernel"]
    with pytest.raises(UnsupportedError):
        decode(text)


@pytest.mark.parametrize(
    ("opcode", "reason"),
    [
        ("NEW", "the simulator does not know the operand 'tmem[UR4]'"),
        ("HMMA", "the simulator does not know the operand 'tmem[UR4]'"),
        (
            "UTCHMMA",
            "tcgen05 (UTCHMMA), the tensor cores of sm_100a, is not simulated: compile a kernel "
            "of wgmma for sm_90a, or of mma.sync",
        ),
    ],
)
def test_a_strange_operand_is_named_with_its_place(opcode, reason):
    strange = {"opcode": f"{opcode}.F32", "operands": "R24,tmem[UR4],!UPT"}
    with pytest.raises(UnsupportedError) as caught:
        decode(printed({"opcode": "NOP"}, strange), sources={16: SourceLine(file="k.cu", line=3)})
    assert str(caught.value) == (
        f"{opcode}.F32 R24, tmem[UR4], !UPT at 0x0010 of kernel (k.cu, line 3): {reason}"
    )


@pytest.mark.parametrize("text", ["", "nvdisasm fatal", "[]", "[{}, [{}]]", "[{}, 5]", "{}"])
def test_what_is_no_disassembly_is_refused_in_one_line(text):
    with pytest.raises(ToolkitError, match=r"^nvdisasm printed something unexpected \(.+\): use"):
        decode(text)


# Whole kernels.


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_the_operands_of_whole_kernels_are_printed_back(arch):
    functions = decode(recorded(arch))
    assert sorted(function.name for function in functions) == ["calls", "jumps"]
    for function in functions:
        for n, i in enumerate(function.instructions):
            assert i.address == INSTRUCTION_BYTES * n
            guard = [f"@{i.guard}"] if i.guard else []
            words = ".".join((i.opcode, *i.modifiers))
            text = " ".join([*guard, words, ", ".join(map(str, i.operands))]).strip()
            assert text == i.text.replace(".reuse", "")


@pytest.mark.parametrize("arch", FRESH)
def test_a_fresh_disassembly_decodes_to_the_same_instructions_as_the_recorded_one(arch):
    """Also with another version of nvdisasm, whose JSON may differ."""
    assert by_kernel(disassembly(arch)) == by_kernel(recorded(arch))


def by_kernel(printed):
    """Instructions by address; a function that `calls` calls may stand alone."""
    whole = {}
    for function in decode(printed):
        kernel = function.name if not function.name.startswith("$") else "calls"
        whole.setdefault(kernel, []).extend(function.instructions)
    return {kernel: sorted(v, key=lambda i: i.address) for kernel, v in whole.items()}


@pytest.mark.parametrize("arch", FRESH)
def test_nothing_is_lost_that_nvdisasm_prints_as_text(arch, tmp_path):
    source = SOURCE.read_text(encoding="utf-8")
    cubin = cubin_of(source, "calls", arch)
    path = tmp_path / "k.cubin"
    path.write_bytes(cubin.image)
    listing = said([disassembler().path, "-c", "-raw", path])
    texts = re.findall(r"/\*[0-9a-f]{4,}\*/\s+(.*?)\s*(?:\(\*.*?\*\))?;", listing)
    known = [i.text for f in decode(disassembly(arch)) for i in f.instructions]
    assert sorted(map(comparable, texts)) == sorted(map(comparable, known))


def comparable(text):
    """Without what only one of the two prints: labels against addresses, spaces, commas."""
    text = re.sub(r"`\((\.L_x_\d+)\)", "TARGET", text)
    text = re.sub(
        r"^((?:@\S+ )?(?:BRA|BSSY|CALL|LEPC|WARPSYNC)\b.*)\b0x[0-9a-f]+$", r"\1TARGET", text
    )
    return re.sub(r"[\s,`()]", "", text)
