// half and bfloat16: 16 bits of storage; arithmetic in float, rounded once to the nearest.
#pragma once

namespace ks_simt {

struct KS_PUBLIC HalfFormat {
  static float widen(uint16_t bits) {
    uint32_t sign = uint32_t(bits & 0x8000) << 16, rest = bits & 0x7fff;
    if (rest >= 0x7c00) return bits_as<float>(sign | 0x7f800000 | (rest & 0x3ff) << 13);
    if (rest >= 0x0400) return bits_as<float>(sign | ((rest << 13) + (112u << 23)));
    float small = float(rest) * 0x1p-24f;
    return sign != 0 ? -small : small;
  }

  // From double, so that nothing is rounded twice.
  static uint16_t narrow(double value) {
    uint64_t bits = bits_as<uint64_t>(value);
    uint16_t sign = uint16_t(bits >> 48 & 0x8000);
    double size = fabs(value);
    if (value != value) return 0x7fff;
    if (size >= 65520.0) return sign | 0x7c00;
    if (size < 0x1p-14) return sign | uint16_t(nearbyint(size * 0x1p24));
    uint64_t rest = (bits & 0x7fffffffffffffff) - (uint64_t(1023 - 15) << 52);
    uint64_t half_way = (uint64_t(1) << 41) - 1 + (rest >> 42 & 1);
    return sign | uint16_t((rest + half_way) >> 42);
  }
};

struct KS_PUBLIC BfloatFormat {
  static float widen(uint16_t bits) { return bits_as<float>(uint32_t(bits) << 16); }

  static uint16_t narrow(double value) {
    if (value != value) return 0x7fff;
    float nearest = float(value);
    uint32_t bits = bits_as<uint32_t>(nearest);
    // A double between two floats must not become a tie by being rounded to one of them.
    if (double(nearest) != value && (bits & 0xffff) == 0x8000)
      bits = fabs(double(nearest)) < fabs(value) ? bits + 1 : bits - 1;
    return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
};

template <class Format>
struct KS_PUBLIC Narrow {
  uint16_t __x;

  Narrow() = default;
  Narrow(float v) : __x(Format::narrow(v)) {}
  Narrow(double v) : __x(Format::narrow(v)) {}
  template <class I, class = std::enable_if_t<std::is_integral<I>::value>>
  Narrow(I v) : __x(Format::narrow(double(v))) {}
  // Between half and bfloat16, through float.
  template <class Other>
  explicit Narrow(Narrow<Other> v) : __x(Format::narrow(float(v))) {}

  operator float() const { return Format::widen(__x); }

  static Narrow from_bits(uint16_t bits) {
    Narrow result;
    result.__x = bits;
    return result;
  }

  Narrow& operator+=(Narrow o) { return *this = *this + o; }
  Narrow& operator-=(Narrow o) { return *this = *this - o; }
  Narrow& operator*=(Narrow o) { return *this = *this * o; }
  Narrow& operator/=(Narrow o) { return *this = *this / o; }
  Narrow& operator++() { return *this += Narrow(1.0f); }
  Narrow& operator--() { return *this -= Narrow(1.0f); }

  friend Narrow operator+(Narrow a) { return a; }
  friend Narrow operator-(Narrow a) { return from_bits(a.__x ^ 0x8000); }
  friend Narrow operator+(Narrow a, Narrow b) { return float(a) + float(b); }
  friend Narrow operator-(Narrow a, Narrow b) { return float(a) - float(b); }
  friend Narrow operator*(Narrow a, Narrow b) { return float(a) * float(b); }
  friend Narrow operator/(Narrow a, Narrow b) { return float(a) / float(b); }
  friend bool operator==(Narrow a, Narrow b) { return float(a) == float(b); }
  friend bool operator!=(Narrow a, Narrow b) { return float(a) != float(b); }
  friend bool operator<(Narrow a, Narrow b) { return float(a) < float(b); }
  friend bool operator<=(Narrow a, Narrow b) { return float(a) <= float(b); }
  friend bool operator>(Narrow a, Narrow b) { return float(a) > float(b); }
  friend bool operator>=(Narrow a, Narrow b) { return float(a) >= float(b); }
};

template <class T>
struct KS_PUBLIC __align__(4) Pair {
  T x, y;

  Pair() = default;
  Pair(T x_, T y_) : x(x_), y(y_) {}

  Pair& operator+=(Pair o) { return *this = *this + o; }
  Pair& operator-=(Pair o) { return *this = *this - o; }
  Pair& operator*=(Pair o) { return *this = *this * o; }
  Pair& operator/=(Pair o) { return *this = *this / o; }
  friend Pair operator-(Pair a) { return {-a.x, -a.y}; }
  friend Pair operator+(Pair a, Pair b) { return {a.x + b.x, a.y + b.y}; }
  friend Pair operator-(Pair a, Pair b) { return {a.x - b.x, a.y - b.y}; }
  friend Pair operator*(Pair a, Pair b) { return {a.x * b.x, a.y * b.y}; }
  friend Pair operator/(Pair a, Pair b) { return {a.x / b.x, a.y / b.y}; }
  friend bool operator==(Pair a, Pair b) { return a.x == b.x && a.y == b.y; }
  friend bool operator!=(Pair a, Pair b) { return !(a == b); }
};

}  // namespace ks_simt

typedef ks_simt::Narrow<ks_simt::HalfFormat> __half, half;
typedef ks_simt::Narrow<ks_simt::BfloatFormat> __nv_bfloat16, nv_bfloat16;
typedef ks_simt::Pair<__half> __half2, half2;
typedef ks_simt::Pair<__nv_bfloat16> __nv_bfloat162, nv_bfloat162;
