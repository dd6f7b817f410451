// half and bfloat16, conversions and intrinsics. Includes nothing: all names are there.
template <typename N>
__global__ void widen(const N* x, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = float(x[i]);
}
template <typename N>
__global__ void narrow(const float* x, N* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = N(x[i]);
}
template <typename N>
__global__ void arithmetic(const N* x, const N* y, N* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[i] = x[i] + y[i];
    out[n + i] = x[i] * y[i];
    out[2 * n + i] = x[i] / y[i];
    out[3 * n + i] = __hmax(x[i], y[i]);
    out[4 * n + i] = __hfma(x[i], y[i], x[i]);
}
extern "C" void launch_widen(const void* x, float* y, bool bf16) {
    if (bf16) widen<<<256, 256>>>((const __nv_bfloat16*)x, y);
    else widen<<<256, 256>>>((const __half*)x, y);
}
extern "C" void launch_narrow(const float* x, void* y, int n, bool bf16) {
    if (bf16) narrow<<<(n + 255) / 256, 256>>>(x, (__nv_bfloat16*)y, n);
    else narrow<<<(n + 255) / 256, 256>>>(x, (half*)y, n);
}
extern "C" void launch_arithmetic(const void* x, const void* y, void* out, int n, bool bf16) {
    int blocks = (n + 255) / 256;
    if (bf16) arithmetic<<<blocks, 256>>>((const __nv_bfloat16*)x, (const __nv_bfloat16*)y, (__nv_bfloat16*)out, n);
    else arithmetic<<<blocks, 256>>>((const half*)x, (const half*)y, (half*)out, n);
}

__global__ void conversions(float* out) {
    half2 h = __floats2half2_rn(1.5f, -2.0f);
    h = __hadd2(h, __half2half2(__float2half(0.25f)));
    out[0] = __low2float(h) + __half22float2(h).y;
    __nv_bfloat162 b = __float22bfloat162_rn(make_float2(3.0f, 4.0f));
    b = __hmul2(b, b);
    out[1] = __bfloat162float(b.x) + __bfloat162float(__high2bfloat16(b));
    out[2] = __half2float(__ushort_as_half(0x3c00)) + __half_as_ushort(__float2half_rn(1.0f));
    float4 v = make_float4(1, 2, 3, 4);
    out[3] = v.x + v.w;
    out[4] = __float2int_rn(2.5f) + 10 * __float2int_rz(-2.7f) + 100 * __float2int_ru(1.1f);
    out[5] = __popc(0xf0) + __clz(1) + __ffs(8) + __brev(1u) / 2147483648.0f;
    out[6] = __int_as_float(__float_as_int(1.25f)) + __uint_as_float(0x3f800000);
    out[7] = __expf(1.0f) - expf(1.0f) + __fdividef(1.0f, 4.0f) + rsqrtf(4.0f) + __frcp_rn(8.0f);
    out[8] = min(3, 4u) + max(1.0f, 2) + fminf(1.0f, 2.0f) + max(INT64_C(5), 4);
    float s, c;
    sincosf(0.0f, &s, &c);
    out[9] = s + c + normcdff(0.0f) + erff(0.0f) + __saturatef(3.0f) + __fmaf_rn(2.0f, 3.0f, 1.0f);
    out[10] = __float2int_rn(1e20f) == INT_MAX && __float2int_rz(NAN) == 0 && __float2uint_rz(-3.0f) == 0;
    half total = __float2half(0.0f);
    for (int i = 0; i < 4; ++i) total += __int2half_rn(i);
    out[11] = total > half(5.0f) ? __half2float(hexp(half(0.0f))) : 0.0f;
    out[12] = __byte_perm(0x33221100, 0x77665544, 0x7610) == 0x77661100;
    out[13] = __umulhi(0x80000000u, 4u) + __mulhi(-1, 1);
}
extern "C" void launch_conversions(float* out) { conversions<<<1, 1>>>(out); }
