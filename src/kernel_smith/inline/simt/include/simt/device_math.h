// Mathematical functions and intrinsics that the C library lacks. Fast ones are as exact as others.
#pragma once

namespace ks_simt {

template <class A, class B>
using Common = std::enable_if_t<std::is_arithmetic<A>::value && std::is_arithmetic<B>::value,
                                std::common_type_t<A, B>>;

}  // namespace ks_simt

// Of a number and no number, the number; as on a GPU, also for min and max.
template <class A, class B>
constexpr ks_simt::Common<A, B> min(A a, B b) {
  using T = std::common_type_t<A, B>;
  if constexpr (std::is_floating_point<T>::value) return fmin(T(a), T(b));
  else return T(b) < T(a) ? T(b) : T(a);
}
template <class A, class B>
constexpr ks_simt::Common<A, B> max(A a, B b) {
  using T = std::common_type_t<A, B>;
  if constexpr (std::is_floating_point<T>::value) return fmax(T(a), T(b));
  else return T(a) < T(b) ? T(b) : T(a);
}
inline unsigned umin(unsigned a, unsigned b) { return a < b ? a : b; }
inline unsigned umax(unsigned a, unsigned b) { return a < b ? b : a; }
inline long long llmin(long long a, long long b) { return a < b ? a : b; }
inline long long llmax(long long a, long long b) { return a < b ? b : a; }

// Macros, because the C library declares functions of these names.
#define __expf(x) expf(x)
#define __exp2f(x) exp2f(x)
#define __exp10f(x) exp10f(x)
#define __logf(x) logf(x)
#define __log2f(x) log2f(x)
#define __log10f(x) log10f(x)
#define __sinf(x) sinf(x)
#define __cosf(x) cosf(x)
#define __tanf(x) tanf(x)
#define __tanhf(x) tanhf(x)
#define __powf(x, y) powf(x, y)
#define __sincosf(x, s, c) sincosf(x, s, c)

// Newer C libraries have some of these themselves.
#if !defined(__GLIBC__) || !__GLIBC_PREREQ(2, 41)
inline float sinpif(float x) { return float(sin(M_PI * fmod(double(x), 2.0))); }
inline float cospif(float x) { return float(cos(M_PI * fmod(double(x), 2.0))); }
inline double sinpi(double x) { return sin(M_PI * fmod(x, 2.0)); }
inline double cospi(double x) { return cos(M_PI * fmod(x, 2.0)); }
#endif
#if !defined(__GLIBC__) || !__GLIBC_PREREQ(2, 42)
inline float rsqrtf(float x) { return float(1.0 / sqrt(double(x))); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline float rsqrt(float x) { return rsqrtf(x); }
#endif
inline float rcbrtf(float x) { return float(1.0 / cbrt(double(x))); }
inline float normcdff(float x) { return float(0.5 * erfc(-double(x) * M_SQRT1_2)); }
inline double normcdf(double x) { return 0.5 * erfc(-x * M_SQRT1_2); }
inline float normcdf(float x) { return normcdff(x); }
inline float norm3df(float a, float b, float c) {
  return float(sqrt(double(a) * a + double(b) * b + double(c) * c));
}
inline float rnorm3df(float a, float b, float c) { return 1.0f / norm3df(a, b, c); }
inline float norm4df(float a, float b, float c, float d) {
  return float(sqrt(double(a) * a + double(b) * b + double(c) * c + double(d) * d));
}
inline float rhypotf(float a, float b) { return 1.0f / hypotf(a, b); }
inline float fdividef(float a, float b) { return a / b; }
inline float __fdividef(float a, float b) { return a / b; }
inline float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }
inline float __frsqrt_rn(float x) { return rsqrtf(x); }

// One rounding each, whatever the compiler may fuse elsewhere: a volatile holds the product.
#define KS_ROUNDING(suffix)                                                                       \
  inline float __fadd_##suffix(float a, float b) { volatile float x = a, y = b; return x + y; }   \
  inline float __fsub_##suffix(float a, float b) { volatile float x = a, y = b; return x - y; }   \
  inline float __fmul_##suffix(float a, float b) { volatile float x = a * b; return x; }          \
  inline float __fdiv_##suffix(float a, float b) { return a / b; }                                \
  inline float __frcp_##suffix(float a) { return 1.0f / a; }                                      \
  inline float __fsqrt_##suffix(float a) { return sqrtf(a); }                                     \
  inline float __fmaf_##suffix(float a, float b, float c) { return fmaf(a, b, c); }               \
  inline double __dadd_##suffix(double a, double b) { volatile double x = a, y = b; return x + y; } \
  inline double __dsub_##suffix(double a, double b) { volatile double x = a, y = b; return x - y; } \
  inline double __dmul_##suffix(double a, double b) { volatile double x = a * b; return x; }      \
  inline double __ddiv_##suffix(double a, double b) { return a / b; }                             \
  inline double __drcp_##suffix(double a) { return 1.0 / a; }                                     \
  inline double __dsqrt_##suffix(double a) { return sqrt(a); }                                    \
  inline double __fma_##suffix(double a, double b, double c) { return fma(a, b, c); }
// Only rounding to nearest: the others would need another mode of the processor.
KS_ROUNDING(rn)
#undef KS_ROUNDING

inline long long clock64() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000ll + now.tv_nsec;
}
inline long long wall_clock64() { return clock64(); }
