// Rungs 13 to 19: C = alpha * sum + beta * C, of four elements that begin on 16 bytes.
__device__ void store_quad(float* c, const float* sum, float alpha, float beta)
{
    float4* const quad = reinterpret_cast<float4*>(c);
    const float4 old = beta == 0.0f ? make_float4(0.0f, 0.0f, 0.0f, 0.0f) : *quad;
    *quad = make_float4(alpha * sum[0] + beta * old.x, alpha * sum[1] + beta * old.y,
                        alpha * sum[2] + beta * old.z, alpha * sum[3] + beta * old.w);
}
