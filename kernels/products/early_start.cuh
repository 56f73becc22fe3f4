// Launches overlap: blocks of the next one may start as the last ones of this run, and wait before they touch global
// memory. Loads behind the wait are no ld.global.nc, which may read what was there when the block started.
#if __CUDA_ARCH__ >= 900
__device__ void let_next_launch_start() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
__device__ void wait_for_last_launch() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
#else
__device__ void let_next_launch_start() {}
__device__ void wait_for_last_launch() {}
#endif
