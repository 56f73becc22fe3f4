"""The command `reorder`: a cubin out, a table or a document, one line for a mistake."""

import json
from pathlib import Path

import pytest

from tests.cubins import cubin_of
from tests.toolkit.cli.commands import invoke, refused
from toolkit.machine_code.kernel import Kernel
from validation import ROOT

SOURCE = ROOT / "tests/toolkit/reorder/product.cu"


@pytest.fixture(scope="module")
def document():
    return json.loads(invoke(f"reorder {SOURCE} --json").stdout)


def test_a_source_becomes_a_cubin_that_is_reordered_already(document):
    result = invoke(f"reorder {SOURCE} --arch sm_90 -o out.cubin")
    assert result.exit_code == 0
    assert "wrote out.cubin" in result.output
    assert "64 multiply-adds" in result.output
    made = Kernel.from_image(Path("out.cubin").read_bytes())
    assert (made.name, made.architecture) == ("product", "sm_90")
    again = json.loads(invoke("reorder out.cubin --json").stdout)
    (loop,) = again["loops"]
    assert loop["before"] == document["loops"][0]["after"]


def test_the_document_has_clocks_of_every_reason(document):
    assert document["architecture"] == "sm_90"
    (loop,) = document["loops"]
    assert loop["multiply_adds"] == 64
    assert loop["after"]["clocks"] <= loop["before"]["clocks"]
    assert "register banks" in loop["before"]["lost"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("nothing.cu", "nothing.cu"),
        (f"{SOURCE} --kernel prodct", "did you mean 'product'"),
        (f"{SOURCE} --arch sm_91", "unknown architecture 'sm_91'"),
        (f"{SOURCE} -o {SOURCE}", "the kernel is read from it"),
        (f"{SOURCE} -o no/where.cubin", "no/where.cubin"),
    ],
)
def test_a_mistake_is_one_line(arguments, message):
    assert message in refused(f"reorder {arguments}")


def test_a_cubin_of_another_architecture_is_not_compiled_again():
    text = SOURCE.read_text(encoding="utf-8")
    made = cubin_of(text, "product")
    Path("out.cubin").write_bytes(made.image)
    said = refused("reorder out.cubin --arch sm_86")
    assert "out.cubin is of sm_90, not of sm_86" in said
