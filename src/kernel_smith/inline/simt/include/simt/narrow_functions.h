// Functions on half and bfloat16. Most exist for both under one name; conversions carry the type's.
#pragma once

#define KS_CONVERSIONS(name, pair, N, P)                                                        \
  inline N __float2##name(float v) { return N(v); }                                             \
  inline N __float2##name##_rn(float v) { return N(v); }                                        \
  inline N __double2##name(double v) { return N(v); }                                           \
  inline N __int2##name##_rn(int v) { return N(v); }                                            \
  inline N __uint2##name##_rn(unsigned v) { return N(v); }                                      \
  inline N __ll2##name##_rn(long long v) { return N(v); }                                       \
  inline N __short2##name##_rn(short v) { return N(v); }                                        \
  inline N __ushort2##name##_rn(unsigned short v) { return N(v); }                              \
  inline float __##name##2float(N v) { return v; }                                              \
  inline int __##name##2int_rn(N v) { return __float2int_rn(v); }                               \
  inline int __##name##2int_rz(N v) { return __float2int_rz(v); }                               \
  inline int __##name##2int_rd(N v) { return __float2int_rd(v); }                               \
  inline int __##name##2int_ru(N v) { return __float2int_ru(v); }                               \
  inline unsigned __##name##2uint_rn(N v) { return __float2uint_rn(v); }                        \
  inline unsigned __##name##2uint_rz(N v) { return __float2uint_rz(v); }                        \
  inline short __##name##_as_short(N v) { return short(v.__x); }                                \
  inline unsigned short __##name##_as_ushort(N v) { return v.__x; }                             \
  inline N __short_as_##name(short v) { return N::from_bits(uint16_t(v)); }                     \
  inline N __ushort_as_##name(unsigned short v) { return N::from_bits(v); }                     \
  inline P __float2##pair##_rn(float v) { return {v, v}; }                                      \
  inline P __floats2##pair##_rn(float x, float y) { return {x, y}; }                            \
  inline P __float22##pair##_rn(float2 v) { return {v.x, v.y}; }                                \
  inline P __##name##2##pair(N v) { return {v, v}; }                                            \
  inline P __halves2##pair(N x, N y) { return {x, y}; }                                         \
  inline P __low2##pair(P v) { return {v.x, v.x}; }                                             \
  inline P __high2##pair(P v) { return {v.y, v.y}; }                                            \
  inline P __lows2##pair(P a, P b) { return {a.x, b.x}; }                                       \
  inline P __highs2##pair(P a, P b) { return {a.y, b.y}; }                                      \
  inline P make_##pair(N x, N y) { return {x, y}; }                                             \
  inline N __low2##name(P v) { return v.x; }                                                    \
  inline N __high2##name(P v) { return v.y; }
KS_CONVERSIONS(half, half2, __half, __half2)
KS_CONVERSIONS(bfloat16, bfloat162, __nv_bfloat16, __nv_bfloat162)
#undef KS_CONVERSIONS

inline float2 __half22float2(__half2 v) { return {v.x, v.y}; }
inline float2 __bfloat1622float2(__nv_bfloat162 v) { return {v.x, v.y}; }
inline __half __float2half_rz(float v) {
  __half nearest = v;
  bool beyond = fabsf(nearest) > fabsf(v);  // the next one towards zero has the next smaller bits
  return beyond ? __half::from_bits(uint16_t(nearest.__x - 1)) : nearest;
}

// One definition for both types: `Narrow<F>` is half or bfloat16, `Pair` is two of them.
#define KS_BINARY(one, two, expression)                                                           \
  template <class F>                                                                              \
  ks_simt::Narrow<F> one(ks_simt::Narrow<F> x, ks_simt::Narrow<F> y) {                            \
    float a = x, b = y;                                                                           \
    return ks_simt::Narrow<F>(expression);                                                        \
  }                                                                                               \
  template <class T>                                                                              \
  ks_simt::Pair<T> two(ks_simt::Pair<T> x, ks_simt::Pair<T> y) {                                  \
    return {one(x.x, y.x), one(x.y, y.y)};                                                        \
  }
KS_BINARY(__hadd, __hadd2, a + b)
KS_BINARY(__hadd_rn, __hadd2_rn, a + b)
KS_BINARY(__hsub, __hsub2, a - b)
KS_BINARY(__hmul, __hmul2, a* b)
KS_BINARY(__hmul_rn, __hmul2_rn, a* b)
KS_BINARY(__hdiv, __h2div, a / b)
KS_BINARY(__hmax, __hmax2, fmaxf(a, b))
KS_BINARY(__hmin, __hmin2, fminf(a, b))
#undef KS_BINARY

template <class F>
ks_simt::Narrow<F> __hfma(ks_simt::Narrow<F> a, ks_simt::Narrow<F> b, ks_simt::Narrow<F> c) {
  return ks_simt::Narrow<F>(fma(double(float(a)), double(float(b)), double(float(c))));
}
template <class T>
ks_simt::Pair<T> __hfma2(ks_simt::Pair<T> a, ks_simt::Pair<T> b, ks_simt::Pair<T> c) {
  return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};
}

#define KS_UNARY(one, two, expression)                        \
  template <class F>                                          \
  ks_simt::Narrow<F> one(ks_simt::Narrow<F> x) {              \
    float a = x;                                              \
    return ks_simt::Narrow<F>(expression);                    \
  }                                                           \
  template <class T>                                          \
  ks_simt::Pair<T> two(ks_simt::Pair<T> x) {                  \
    return {one(x.x), one(x.y)};                              \
  }
KS_UNARY(__hneg, __hneg2, -a)
KS_UNARY(__habs, __habs2, fabsf(a))
KS_UNARY(hexp, h2exp, exp(double(a)))
KS_UNARY(hexp2, h2exp2, exp2(double(a)))
KS_UNARY(hexp10, h2exp10, exp10(double(a)))
KS_UNARY(hlog, h2log, log(double(a)))
KS_UNARY(hlog2, h2log2, log2(double(a)))
KS_UNARY(hlog10, h2log10, log10(double(a)))
KS_UNARY(hsin, h2sin, sin(double(a)))
KS_UNARY(hcos, h2cos, cos(double(a)))
KS_UNARY(htanh, h2tanh, tanh(double(a)))
KS_UNARY(hsqrt, h2sqrt, sqrtf(a))
KS_UNARY(hrsqrt, h2rsqrt, 1.0 / sqrt(double(a)))
KS_UNARY(hrcp, h2rcp, 1.0 / double(a))
KS_UNARY(hfloor, h2floor, floorf(a))
KS_UNARY(hceil, h2ceil, ceilf(a))
KS_UNARY(htrunc, h2trunc, truncf(a))
KS_UNARY(hrint, h2rint, nearbyintf(a))
#undef KS_UNARY

#define KS_COMPARE(one, mark)                                            \
  template <class F>                                                     \
  bool one(ks_simt::Narrow<F> a, ks_simt::Narrow<F> b) {                 \
    return float(a) mark float(b);                                       \
  }
KS_COMPARE(__heq, ==)
KS_COMPARE(__hne, !=)
KS_COMPARE(__hlt, <)
KS_COMPARE(__hle, <=)
KS_COMPARE(__hgt, >)
KS_COMPARE(__hge, >=)
#undef KS_COMPARE

template <class F>
bool __hisnan(ks_simt::Narrow<F> a) {
  return float(a) != float(a);
}
template <class F>
int __hisinf(ks_simt::Narrow<F> a) {
  return std::isinf(float(a)) ? (float(a) < 0 ? -1 : 1) : 0;
}
template <class T>
float __low2float(ks_simt::Pair<T> v) {
  return v.x;
}
template <class T>
float __high2float(ks_simt::Pair<T> v) {
  return v.y;
}
template <class T>
ks_simt::Pair<T> __lowhigh2highlow(ks_simt::Pair<T> v) {
  return {v.y, v.x};
}
