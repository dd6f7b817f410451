// Vector types: float4, int2, uint3 and their kin, and dim3.
#pragma once

#define KS_VECTORS(name, type, align2, align4)                                                   \
  struct KS_PUBLIC name##1 { type x; };                                                            \
  struct KS_PUBLIC __align__(align2) name##2 { type x, y; };                                       \
  struct KS_PUBLIC name##3 { type x, y, z; };                                                      \
  struct KS_PUBLIC __align__(align4) name##4 { type x, y, z, w; };                                 \
  inline name##1 make_##name##1(type x) { return {x}; }                                          \
  inline name##2 make_##name##2(type x, type y) { return {x, y}; }                               \
  inline name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; }                    \
  inline name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }

KS_VECTORS(char, signed char, 2, 4)
KS_VECTORS(uchar, unsigned char, 2, 4)
KS_VECTORS(short, short, 4, 8)
KS_VECTORS(ushort, unsigned short, 4, 8)
KS_VECTORS(int, int, 8, 16)
KS_VECTORS(uint, unsigned, 8, 16)
KS_VECTORS(long, long, 16, 16)
KS_VECTORS(ulong, unsigned long, 16, 16)
KS_VECTORS(longlong, long long, 16, 16)
KS_VECTORS(ulonglong, unsigned long long, 16, 16)
KS_VECTORS(float, float, 8, 16)
KS_VECTORS(double, double, 16, 16)
#undef KS_VECTORS

struct KS_PUBLIC dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return {x, y, z}; }
};
