#include "operations.h"

OPERATION(NOP) {}

Handler *const handlers[] = {
    op_NOP,
#define HANDLER(x) op_##x,
    DATA_OPS(HANDLER)
#undef HANDLER
};

/* The operations in the order of their numbers. */
static const char *const names[] = {
    "NOP",
#define STRING(x) #x,
    DATA_OPS(STRING) CONTROL_OPS(STRING)
#undef STRING
};

EXPORT const char *const *core_operation_names(u32 *count) {
    *count = OPS_END;
    return names;
}
