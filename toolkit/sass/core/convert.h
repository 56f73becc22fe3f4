/* Conversions between formats: of floating point, of integers, and rounding to whole numbers. */
#pragma once

/* Ins.aux of integers: how many bits, whether signed, and which byte of a register is the first. */
enum { BITS_MASK = 0x7f, IS_SIGNED = 0x80, FIRST_BYTE_SHIFT = 16 };
/* Ins.flags beside FTZ and the rounding: a NaN becomes 0 rather than the farthest integer; what
 * the source is, F32 if neither. */
enum { NAN_TO_ZERO = 0x100, SOURCE_F64 = 0x2000, SOURCE_HALF = 0x4000 };

/* Ins.flags of op_PACK_HALVES beside RELU: what is beyond the format becomes its greatest. */
enum { FINITE = 0x200 };
/* Ins.flags of TO_HALF: a bfloat16 of a binary16. Of conversions to and from bytes: their format is
 * E5M2, not E4M3; they are the two numbers of a register, not two registers. */
enum { TO_BFLOAT = 0x8000, BYTE_E5M2 = 0x10000, BYTES_OF_HALVES = 0x20000 };
