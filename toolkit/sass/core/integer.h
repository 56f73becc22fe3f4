/* Integers, logic, shifts and moves.
 *
 * Every operation writes the lanes of m and leaves the others alone. Source modifiers are applied
 * before an operation sees its operands, but for the signs of sums, which reach the carry.
 */
#pragma once

/* Sums. Ins.flags: a negated source is its complement plus one, which reaches the carry. */
enum { NEGATE_0 = 1, NEGATE_1 = 2, NEGATE_2 = 4 };
/* Flags of several sums in a word, of values of aux bits, SIGNED or not. With NEGATE_1 they are
 * differences. They wrap, or with ADD_SATURATES stay in range. */
enum { ADD_SATURATES = 4 };

/* Products, of which IMAD_WIDE keeps all 64 bits or their upper half. */
enum { SIGNED = 1, UPPER_HALF = 2 };

/* Dot products, added to c, of the values of a, of aux bits each, and the first or, with HIGH_BYTES,
 * the last bytes of b. Ins.flags: */
enum { SIGNED_A = 1, SIGNED_B = 2, HIGH_BYTES = 4 };

/* SHF: the pair of s[2] (high) and s[0] (low), shifted by s[1]; the low or the high word of it.
 * Amounts beyond aux, 32 or 64, count as aux, or wrap. */
enum { FUNNEL_RIGHT = 2, FUNNEL_HIGH = 4, FUNNEL_WRAP = 8 };

/* LEA: (a << aux) + b; with LEA_HIGH the word above it, (c:a << aux) >> 32, + b. */
enum { LEA_HIGH = 8, LEA_SIGNED = 16 };

/* pd[0] is set where the result is not zero, or ps[0]; with LOGIC_AND: and ps[0]. */
enum { LOGIC_AND = 1 };

/* Comparisons. Ins.flags: SIGNED, EXTENDED; Ins.aux as compare.h says. */
enum { EXTENDED = 2 };

/* Smaller where ps[0] is true, else larger; of a + b and c with MINMAX_SUM, of all three with
 * MINMAX_3; and no less than 0 with MINMAX_RELU. aux is the width of one value in bits. */
enum { MINMAX_RELU = 2, MINMAX_SUM = 4, MINMAX_3 = 8 };

/* Absolute differences of the values of a and b, of aux bits each; with ABSDIFF_SUM, their sum plus c. */
enum { ABSDIFF_SUM = 2 };

/* PRMT: byte k of the result is that of c:a which nibble k of b names; its upper bit asks for the
 * byte's sign instead. Ins.flags: how the nibbles are made of b. */
enum { PERMUTE_INDEX = 0, PERMUTE_F4E, PERMUTE_B4E, PERMUTE_RC8, PERMUTE_ECL, PERMUTE_ECR,
       PERMUTE_RC16 };

/* FLO: the place of the highest set bit (of the highest bit unlike the sign, with SIGNED), or with
 * FLO_SHIFT how far it is from bit 31; ~0 where there is none. */
enum { FLO_SHIFT = 2 };

enum { WRAP = 2 };

/* Predicates P0 to P6 (with PREDICATES_UNIFORM UP0 to UP6) as bits aux, aux + 1, ... of a word:
 * of those, the ones in b move. */
enum { PREDICATES_UNIFORM = 1, PREDICATES_COUNT = 7 };
