extern "C" __global__ void nothing(int unused)
{
}

// When and where every block ran: SM, its clock and the device's timer at start and end.
extern "C" __global__ void blocks_on_sms(long long* noted, int cycles)
{
    __shared__ long long begin, end;
    if (threadIdx.x == 0) {
        long long timer;
        begin = clock64();
        asm volatile("mov.u64 %0, %globaltimer;" : "=l"(timer));
        noted[5 * size_t(blockIdx.x) + 3] = timer;
    }
    __syncthreads();
    while (clock64() - begin < cycles);
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned sm;
        long long timer;
        asm volatile("mov.u32 %0, %smid;" : "=r"(sm));
        asm volatile("mov.u64 %0, %globaltimer;" : "=l"(timer));
        long long* mine = noted + 5 * size_t(blockIdx.x);
        mine[0] = sm, mine[1] = begin, mine[4] = timer;
        end = clock64();
        mine[2] = end;
    }
}
