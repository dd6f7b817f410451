// Integer intrinsics, conversions between numbers, and the bits of one as another.
#pragma once

namespace ks_simt {

template <class To, class From>
To bits_as(From value) {
  static_assert(sizeof(To) == sizeof(From), "sizes differ");
  To result;
  memcpy(&result, &value, sizeof result);
  return result;
}

// To an integer as a GPU does it: too large values are clamped, and what is no number is 0.
template <class To, class From>
To clamped(From value) {
  constexpr From low = From(std::numeric_limits<To>::min());
  constexpr From above = From(std::numeric_limits<To>::max() / 2 + 1) * 2;
  if (value != value) return 0;
  if (value < low) return std::numeric_limits<To>::min();
  return value >= above ? std::numeric_limits<To>::max() : To(value);
}

// The float nearest to a number in one direction: the default rounding, mended where it overshot.
template <class To, class From>
To toward(From value, bool up) {
  To nearest = To(value);
  long double exact = value;
  if (up && nearest < exact) return std::nextafter(nearest, std::numeric_limits<To>::infinity());
  if (!up && nearest > exact) return std::nextafter(nearest, -std::numeric_limits<To>::infinity());
  return nearest;
}

}  // namespace ks_simt

inline int __float_as_int(float v) { return ks_simt::bits_as<int>(v); }
inline unsigned __float_as_uint(float v) { return ks_simt::bits_as<unsigned>(v); }
inline float __int_as_float(int v) { return ks_simt::bits_as<float>(v); }
inline float __uint_as_float(unsigned v) { return ks_simt::bits_as<float>(v); }
inline long long __double_as_longlong(double v) { return ks_simt::bits_as<long long>(v); }
inline double __longlong_as_double(long long v) { return ks_simt::bits_as<double>(v); }
inline int __double2hiint(double v) { return int(__double_as_longlong(v) >> 32); }
inline int __double2loint(double v) { return int(__double_as_longlong(v)); }
inline double __hiloint2double(int high, int low) {
  return __longlong_as_double((long long)(uint64_t(uint32_t(high)) << 32 | uint32_t(low)));
}

#define KS_ROUNDED(from, name, type)                                                            \
  inline type __##from##2##name##_rn(from v) { return ks_simt::clamped<type>(nearbyint(v)); }   \
  inline type __##from##2##name##_rz(from v) { return ks_simt::clamped<type>(trunc(v)); }       \
  inline type __##from##2##name##_ru(from v) { return ks_simt::clamped<type>(ceil(v)); }        \
  inline type __##from##2##name##_rd(from v) { return ks_simt::clamped<type>(floor(v)); }
KS_ROUNDED(float, int, int)
KS_ROUNDED(float, uint, unsigned)
KS_ROUNDED(float, ll, long long)
KS_ROUNDED(float, ull, unsigned long long)
KS_ROUNDED(double, int, int)
KS_ROUNDED(double, uint, unsigned)
KS_ROUNDED(double, ll, long long)
KS_ROUNDED(double, ull, unsigned long long)
#undef KS_ROUNDED

inline float __int2float_rn(int v) { return float(v); }
inline float __uint2float_rn(unsigned v) { return float(v); }
inline float __ll2float_rn(long long v) { return float(v); }
inline float __ull2float_rn(unsigned long long v) { return float(v); }
inline double __int2double_rn(int v) { return v; }
inline double __uint2double_rn(unsigned v) { return v; }
inline double __ll2double_rn(long long v) { return double(v); }
inline float __double2float_rn(double v) { return float(v); }
inline float __double2float_rz(double v) { return ks_simt::toward<float>(v, v < 0); }
inline float __double2float_ru(double v) { return ks_simt::toward<float>(v, true); }
inline float __double2float_rd(double v) { return ks_simt::toward<float>(v, false); }

inline int __popc(unsigned v) { return __builtin_popcount(v); }
inline int __popcll(unsigned long long v) { return __builtin_popcountll(v); }
inline int __clz(int v) { return v == 0 ? 32 : __builtin_clz(unsigned(v)); }
inline int __clzll(long long v) { return v == 0 ? 64 : __builtin_clzll((unsigned long long)v); }
// Overloaded, because MACA and HIP pass masks of 64 bits to __ffsll in either sign.
inline int __ffs(int v) { return __builtin_ffs(v); }
inline int __ffs(unsigned v) { return __builtin_ffs(int(v)); }
inline int __ffsll(long long v) { return __builtin_ffsll(v); }
inline int __ffsll(unsigned long long v) { return __builtin_ffsll((long long)v); }

inline unsigned long long __brevll(unsigned long long v) {
  unsigned long long result = 0;
  for (int bit = 0; bit < 64; ++bit) result |= (v >> bit & 1) << (63 - bit);
  return result;
}
inline unsigned __brev(unsigned v) { return unsigned(__brevll(v) >> 32); }

inline unsigned __byte_perm(unsigned low, unsigned high, unsigned selector) {
  uint64_t bytes = uint64_t(high) << 32 | low;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    unsigned choice = selector >> 4 * i & 15;
    unsigned byte = unsigned(bytes >> 8 * (choice & 7)) & 255;
    if (choice & 8) byte = byte & 128 ? 255 : 0;
    result |= byte << 8 * i;
  }
  return result;
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return unsigned((uint64_t(high) << 32 | low) << (shift & 31) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return unsigned((uint64_t(high) << 32 | low) >> (shift & 31));
}

inline int __mul24(int a, int b) {
  return int(unsigned(a << 8 >> 8) * unsigned(b << 8 >> 8));
}
inline unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffff) * (b & 0xffffff); }
inline int __mulhi(int a, int b) { return int((long long)a * b >> 32); }
inline unsigned __umulhi(unsigned a, unsigned b) { return unsigned(uint64_t(a) * b >> 32); }
inline long long __mul64hi(long long a, long long b) { return (long long)((__int128)a * b >> 64); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)((unsigned __int128)a * b >> 64);
}
inline unsigned __sad(int a, int b, unsigned c) {
  return unsigned(a < b ? (long long)b - a : (long long)a - b) + c;
}
inline int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 4; ++i) c += (signed char)(a >> 8 * i) * (signed char)(b >> 8 * i);
  return c;
}
