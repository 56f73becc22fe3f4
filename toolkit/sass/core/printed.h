/* What printf was called with: records, whose text is made when the launch has ended.
 *
 * A record is a `Call`, then the format with its zero, the arguments in 8 bytes each, and the strings
 * among them with their zeros. Arguments of a conversion are in the order of the format; `*` is one.
 */
#pragma once

#include "core.h"

/* Bytes of records that are kept, as many as a device keeps by default. */
enum { MOST_PRINTED_BYTES = 1 << 20 };

typedef struct { u64 block; u32 thread, format_bytes, arguments, string_bytes; } Call;

struct Printed { u8 *records; u64 bytes, room, calls; };

/* A conversion of a format: the bytes of its arguments, at most `*`, `*` and its own, and its letter. */
typedef struct { u32 count, bytes[3]; u8 letter; } Conversion;

const u8 *next_conversion(const u8 *format, Conversion *found);
int append_printed(Printed *p, const void *data, u64 bytes);
void free_printed(Printed *p);
