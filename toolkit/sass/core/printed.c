#include "printed.h"

#include <stdlib.h>
#include <string.h>

#include "grow.h"

void free_printed(Printed *p) {
    if (p) free(p->records);
    free(p);
}

/* False where there is not enough memory. */
int append_printed(Printed *p, const void *data, u64 bytes) {
    if (!GROWN(p->records, p->room, p->bytes + bytes)) return 0;
    memcpy(p->records + p->bytes, data, bytes);
    p->bytes += bytes;
    return 1;
}

static int is_one_of(u8 x, const char *of) { return x && strchr(of, x) != NULL; }

static const u8 *after_number(const u8 *at, Conversion *found) {
    if (*at == '*') {
        found->bytes[found->count++] = 4;
        return at + 1;
    }
    while (*at >= '0' && *at <= '9') at++;
    return at;
}

/* The next conversion of a format that takes arguments, and the format behind it; NULL at the end. */
const u8 *next_conversion(const u8 *format, Conversion *found) {
    for (const u8 *at = format; *at; at++) {
        if (*at != '%') continue;
        *found = (Conversion){0};
        do at++;
        while (is_one_of(*at, "-+ #0"));
        at = after_number(at, found);
        if (*at == '.') at = after_number(at + 1, found);
        int is_wide = 0;
        for (; is_one_of(*at, "hlLjzt"); at++) is_wide |= *at != 'h' && *at != 'L';
        found->letter = *at;
        if (!*at) return NULL;
        if (is_one_of(*at, "diouxXc")) found->bytes[found->count++] = is_wide && *at != 'c' ? 8 : 4;
        else if (is_one_of(*at, "fFeEgGaAspn")) found->bytes[found->count++] = 8;
        if (found->count) return at + 1;
    }
    return NULL;
}
