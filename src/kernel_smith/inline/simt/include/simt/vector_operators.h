// Arithmetic on vector types, element by element, as HIP has it.
#pragma once

#define KS_ARITHMETIC(type, scalar, mark)                                                        \
  inline type##2 operator mark(type##2 a, type##2 b) { return {a.x mark b.x, a.y mark b.y}; }    \
  inline type##2 operator mark(type##2 a, scalar b) { return {a.x mark b, a.y mark b}; }         \
  inline type##2 operator mark(scalar a, type##2 b) { return {a mark b.x, a mark b.y}; }         \
  inline type##2& operator mark##=(type##2& a, type##2 b) { return a = a mark b; }               \
  inline type##4 operator mark(type##4 a, type##4 b) {                                           \
    return {a.x mark b.x, a.y mark b.y, a.z mark b.z, a.w mark b.w};                             \
  }                                                                                              \
  inline type##4 operator mark(type##4 a, scalar b) {                                            \
    return {a.x mark b, a.y mark b, a.z mark b, a.w mark b};                                     \
  }                                                                                              \
  inline type##4 operator mark(scalar a, type##4 b) {                                            \
    return {a mark b.x, a mark b.y, a mark b.z, a mark b.w};                                     \
  }                                                                                              \
  inline type##4& operator mark##=(type##4& a, type##4 b) { return a = a mark b; }
#define KS_ALL_MARKS(type, scalar) \
  KS_ARITHMETIC(type, scalar, +)   \
  KS_ARITHMETIC(type, scalar, -)   \
  KS_ARITHMETIC(type, scalar, *)   \
  KS_ARITHMETIC(type, scalar, /)
KS_ALL_MARKS(float, float)
KS_ALL_MARKS(double, double)
KS_ALL_MARKS(int, int)
KS_ALL_MARKS(uint, unsigned)
#undef KS_ALL_MARKS
#undef KS_ARITHMETIC
