"""Stores what Triton compiles of `of_triton.add`, for tests without Triton.

`python -m tests.toolkit.frontends.kernels.store_triton` writes add_sm_90.cubin beside this file.
"""

from pathlib import Path

CUBIN = Path(__file__).with_name("add_sm_90.cubin")

if __name__ == "__main__":
    import triton
    from triton.backends.compiler import GPUTarget

    from tests.toolkit.frontends.kernels.of_triton import add

    source = triton.compiler.ASTSource(
        add,
        signature={
            "x_ptr": "*fp32",
            "y_ptr": "*fp32",
            "out_ptr": "*fp32",
            "n": "i32",
            "BLOCK": "constexpr",
        },
        constexprs={(4,): 128},
    )
    CUBIN.write_bytes(triton.compile(source, target=GPUTarget("cuda", 90, 32)).asm["cubin"])
