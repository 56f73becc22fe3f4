// Types that headers of public repositories name; no kernel here calls cuBLAS.
#pragma once
typedef struct cublasContext* cublasHandle_t;
typedef int cublasStatus_t;
