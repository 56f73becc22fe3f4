/* Registers that an instruction reads and writes: how many, from its slots on. */
#pragma once

#include "core.h"

u32 words_read(const Ins *i, int k);
u32 words_written(const Ins *i);
u32 words_written_beside(const Ins *i);
