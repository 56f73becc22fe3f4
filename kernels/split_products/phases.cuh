// Phases of a launch, each of which needs all results of the one before. Blocks take items of a phase by ticket and
// wait for the items of others only when none is left to take. Those others are running, so that the wait ends even
// if only some blocks of the grid fit on the GPU.

// Execute `work` on items 0 to `items` - 1, and return when all of them are done by any block; `is_last`: when none is left
// to take.
template <typename Work> __device__ void run_phase(Control* control, int phase, unsigned items, bool is_last, Work work)
{
    __shared__ unsigned taken;
    if (items == 0) return;
    unsigned next = 0;
    if (threadIdx.x == 0) next = atomicAdd(&control->tickets[phase], 1);
    for (;;) {
        __syncthreads();  // all have read the last ticket, and stored their part of its item
        if (threadIdx.x == 0) taken = next;
        __syncthreads();
        const unsigned item = taken;
        if (item >= items) break;
        if (threadIdx.x == 0) next = atomicAdd(&control->tickets[phase], 1);  // the work hides its latency
        work(item);
        if (is_last) continue;
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0) atomicAdd(&control->done[phase], 1);
    }
    if (!is_last && threadIdx.x == 0) {
        unsigned done;
        do {
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(done) : "l"(&control->done[phase]) : "memory");
        } while (done < items);
    }
    __syncthreads();
}
