// Launches overlap: blocks of the next one may start before this one has ended, and wait before they touch global memory.
// It starts when the last blocks of this one leave, or when all of them have let it start. What a kernel loads behind the
// wait is not loaded by ld.global.nc, which may find what was there when the block started.
#if __CUDA_ARCH__ >= 900
__device__ void let_next_launch_start() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
__device__ void wait_for_last_launch() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
#else
__device__ void let_next_launch_start() {}
__device__ void wait_for_last_launch() {}
#endif
