"""Run a launch on a GPU: PyCUDA, events, cuBLAS, and a process that may crash.

Comes in: a `GpuLaunch`. Goes out: outputs and samples of time. Start with `launch`, then `context`.
`worker_process` needs no GPU: it serves simulated rungs, too.
"""
