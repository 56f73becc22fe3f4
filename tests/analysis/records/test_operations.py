"""Operations of matrix products and of half precision, by the text of the instruction."""

import pytest

from analysis.records.operations import half_operations, products_of


@pytest.mark.parametrize(
    ("text", "source", "operations"),
    [
        ("HMMA.16816.F32 R4, R8, R12, R4", "fp16", 2 * 16 * 8 * 16),
        ("HMMA.16816.F16 R4, R8, R12, R4", "fp16", 2 * 16 * 8 * 16),
        ("HMMA.1688.F32.TF32 R4, R8, R12, R4", "tf32_dst_fp32", 2 * 16 * 8 * 8),
        ("HMMA.1684.F32.TF32 R4, R8, R12, R4", "tf32_dst_fp32", 2 * 16 * 8 * 4),
        ("IMMA.8816.S8.S8 R4, R8.ROW, R2.COL, R4", "int8", 2 * 8 * 8 * 16),
        ("IMMA.16864.U4.S4 R4, R8.ROW, R2.COL, R4", "int4", 2 * 16 * 8 * 64),
        ("BMMA.88128.AND.POPC R4, R8, R2, R4", "int1", 2 * 8 * 8 * 128),
        ("DMMA.884 R4, R8, R2, R4", "fp64", 2 * 8 * 8 * 4),
        ("DMMA.16x8x16 R4, R8, R2, R4", "fp64", 2 * 16 * 8 * 16),
        ("QMMA.16832.F32.E4M3.E5M2 R4, R8, R2, R4", "fp8", 2 * 16 * 8 * 32),
        ("QMMA.SF.16832.F32.E4M3.E5M2.E8 R4, R8, R2, R4, R0, R1, URZ", "fp8", 2 * 16 * 8 * 32),
        ("QMMA.16832.F32.E4M3.E2M1 R4, R8, R2, R4", "fp4_fp6_dst_fp32", 2 * 16 * 8 * 32),
        ("QMMA.16832.F16.E3M2.E2M3 R4, R8, R2, R4", "fp4_fp6_dst_fp16", 2 * 16 * 8 * 32),
        ("OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X R4, R8, R2, R4", "fp4_dst_fp32", 2 * 16 * 8 * 64),
        # the four warps of a warpgroup have 16 rows each
        ("HGMMA.64x256x16.F32.BF16 R24, gdesc[UR8], R24", "bf16_dst_fp32", 2 * 16 * 256 * 16),
        ("QGMMA.64x64x32.F16.E5M2.E4M3 R24, R56, gdesc[UR4], R24", "fp8", 2 * 16 * 64 * 32),
        ("IGMMA.64x8x32.S8.S8 R24, gdesc[UR8], R24", "int8", 2 * 16 * 8 * 32),
        ("BGMMA.64x8x256.AND.POPC R24, gdesc[UR8], R24", "int1", 2 * 16 * 8 * 256),
        ("IMAD.MOV.U32 R1, RZ, RZ, c[0x0][0x28]", "", 0),
        ("FFMA R0, R1, R2, R3", "", 0),
    ],
)
def test_operations_of_a_product(text, source, operations):
    assert products_of(text) == (source, operations)


@pytest.mark.parametrize(
    ("text", "operations"),
    [
        ("HFMA2 R0, R1, R2, R3", 4),
        ("HADD2 R0, R1, R2", 2),
        ("HMUL2 R0, R1, R2", 2),
        ("HFMA2.MMA R0, -RZ, RZ, 0, 0", 0),  # loads a constant
        ("HADD2.F32 R0, -RZ, R1.H0_H0", 0),  # converts
        ("FADD R0, R1, R2", 0),
    ],
)
def test_operations_of_a_lane_in_half_precision(text, operations):
    assert half_operations(text.partition(" ")[0].partition(".")[0], text) == operations
