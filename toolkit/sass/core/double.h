/* Double precision, in register pairs. */
#pragma once

#include "lanes.h"

#define SIGN64 0x8000000000000000u
#define INF64 0x7ff0000000000000u
#define QUIET64 0x0008000000000000u
#define NAN64 0xfff8000000000000u /* of an invalid operation */

static inline int is_nan64(u64 x) { return (x & ~SIGN64) > INF64; }

/* pd[0]: the first source is the extreme (the greatest; the least where flags say so), +0 above
 * -0, a number before a NaN; pd[1]: both are NaN. */
enum { LEAST = 1 };
