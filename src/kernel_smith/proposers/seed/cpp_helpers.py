"""The C++ that generated kernels take for granted, in small pieces; a seed carries what it uses."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kernel_smith.proposers.seed.templates import template

_HEADER = """\
#if !defined(__clang__)
#pragma GCC optimize("no-thread-jumps")  // keeps conditions whole, for loops to become vectors
#if defined(__AVX512F__)
#pragma GCC target("prefer-vector-width=512")
#endif
#endif
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <type_traits>
"""


@dataclass(frozen=True)
class Helper:
    """`text` is needed where `pattern` occurs; it may use helpers that stand before it."""

    pattern: str
    text: str


_HELPERS = (
    Helper(
        r"\b(at::BFloat16|c10::BFloat16|bfloat16)\b",
        """\
// A float without its lower half; arithmetic is done on floats. The compiler's own copies of the
// whole would keep loops from becoming vectors.
struct BFloat16 {
    uint16_t bits = 0;
    BFloat16() = default;
    BFloat16(const BFloat16& other) : bits(other.bits) {}
    BFloat16& operator=(const BFloat16& other) { bits = other.bits; return *this; }
    BFloat16(float value) {
        uint32_t wide;
        std::memcpy(&wide, &value, sizeof wide);
        const bool is_nan = value != value;
        bits = is_nan ? 0x7fc0 : static_cast<uint16_t>((wide + 0x7fff + (wide >> 16 & 1)) >> 16);
    }
    operator float() const {
        const uint32_t wide = static_cast<uint32_t>(bits) << 16;
        float value;
        std::memcpy(&value, &wide, sizeof value);
        return value;
    }
};
namespace at { using ::BFloat16; }
namespace c10 { using ::BFloat16; }
using bfloat16 = BFloat16;
""",
    ),
    Helper(
        r"\b(at::Half|c10::Half|half)\b",
        """\
// Stored in 16 bits; arithmetic is done on floats. Neither of `_Float16` nor of the compiler's own
// copies of the whole does g++ make vectors.
struct Half {
    uint16_t bits = 0;
    Half() = default;
    Half(const Half& other) : bits(other.bits) {}
    Half& operator=(const Half& other) { bits = other.bits; return *this; }
    Half(float value) {
        uint32_t wide, tiny;
        std::memcpy(&wide, &value, sizeof wide);
        const uint32_t sign = wide >> 16 & 0x8000;
        wide &= 0x7fffffff;
        std::memcpy(&value, &wide, sizeof value);
        value += 0.5f;  // the last bit of which is that of numbers below 2^-14
        std::memcpy(&tiny, &value, sizeof tiny);
        const uint32_t rounded = (wide - 0x38000000 + 0xfff + (wide >> 13 & 1)) >> 13;
        const uint32_t number = wide < 0x38800000 ? tiny - 0x3f000000 : rounded;
        const uint32_t limited = wide >= 0x477ff000 ? 0x7c00 : number;
        bits = static_cast<uint16_t>(sign | (wide > 0x7f800000 ? 0x7e00 : limited));
    }
    operator float() const {
        const uint32_t size = bits & 0x7fff, shifted = size << 13;
        float value;
        std::memcpy(&value, &shifted, sizeof value);
        value *= 0x1p112f;
        uint32_t wide;
        std::memcpy(&wide, &value, sizeof wide);
        wide = size >= 0x7c00 ? shifted | 0x7f800000 : wide;
        wide |= static_cast<uint32_t>(bits & 0x8000) << 16;
        std::memcpy(&value, &wide, sizeof value);
        return value;
    }
};
namespace at { using ::Half; }
namespace c10 { using ::Half; }
using half = Half;
""",
    ),
    Helper(
        r"\b(widen|narrow)\(",
        """\
#if defined(__F16C__)
#include <immintrin.h>
#endif
constexpr int64_t HALVES =
#if defined(__AVX512F__)
    16;
#else
    8;
#endif
inline void widen(const Half* from, float* to, int64_t count) {
    int64_t whole = 0;
#if defined(__F16C__)
    whole = count / HALVES * HALVES;
    for (int64_t i = 0; i < whole; i += HALVES)
#if defined(__AVX512F__)
        _mm512_storeu_ps(to + i, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)(from + i))));
#else
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)(from + i))));
#endif
#endif
    for (int64_t i = whole; i < count; ++i) to[i] = from[i];
}
inline void narrow(const float* from, Half* to, int64_t count) {
    int64_t whole = 0;
#if defined(__F16C__)
    whole = count / HALVES * HALVES;
    for (int64_t i = 0; i < whole; i += HALVES)
#if defined(__AVX512F__)
        _mm256_storeu_si256((__m256i*)(to + i), _mm512_cvtps_ph(_mm512_loadu_ps(from + i), 0));
#else
        _mm_storeu_si128((__m128i*)(to + i), _mm256_cvtps_ph(_mm256_loadu_ps(from + i), 0));
#endif
#endif
    for (int64_t i = whole; i < count; ++i) to[i] = from[i];
}
""",
    ),
    Helper(
        r"\bc10::convert<",
        """\
namespace c10 {
template <typename To, typename From>
inline To convert(From value) { return static_cast<To>(value); }
}
""",
    ),
    Helper(
        r"\bc10::bit_cast<",
        """\
namespace c10 {
template <typename To, typename From>
inline To bit_cast(const From& from) {
    To to;
    static_assert(sizeof to == sizeof from, "sizes differ");
    std::memcpy(&to, &from, sizeof to);
    return to;
}
}
""",
    ),
    Helper(
        r"\b(max|min)_propagate_nan\(",
        """\
// Two choices rather than one by two conditions, which g++ would join as single bytes.
template <typename T>
inline T max_propagate_nan(T a, T b) { const T larger = a > b ? a : b; return a != a ? a : larger; }
template <typename T>
inline T min_propagate_nan(T a, T b) { const T less = a < b ? a : b; return a != a ? a : less; }
""",
    ),
    Helper(
        r"\b(div_floor_integer|floor_divide_integral)\(",
        """\
namespace c10 {
template <typename A, typename B>
inline std::common_type_t<A, B> div_floor_integer(A a, B b) {
    const auto quotient = a / b;
    return quotient - (a % b != 0 && (a < 0) != (b < 0));
}
}
template <typename A, typename B>
inline std::common_type_t<A, B> floor_divide_integral(A a, B b) {
    return c10::div_floor_integer(a, b);
}
""",
    ),
    Helper(
        r"\bmod\(",
        """\
template <typename A, typename B>
inline std::common_type_t<A, B> mod(A a, B b) {
    if constexpr (std::is_floating_point_v<A>) return std::fmod(a, b);
    else return a % b;
}
""",
    ),
    Helper(
        r"\b[Ww]elford",
        """\
// Mean and sum of squared differences, one value or one part at a time.
template <typename T>
struct Welford { T mean = 0; T m2 = 0; T weight = 0; };
template <typename T, uint64_t chunk>
struct WelfordHelper { WelfordHelper() = default; explicit WelfordHelper(uint64_t) {} };
template <typename T>
inline Welford<T> welford_combine(const Welford<T>& a, const Welford<T>& b, bool = false) {
    const T weight = a.weight + b.weight;
    if (weight == 0) return a;
    const T delta = b.mean - a.mean;
    const T share = b.weight / weight;
    return {a.mean + delta * share, a.m2 + b.m2 + delta * delta * a.weight * share, weight};
}
template <typename T>
inline Welford<T> welford_combine(const Welford<T>& a, T value) {
    const T weight = a.weight + 1;
    const T delta = value - a.mean;
    const T mean = a.mean + delta / weight;
    return {mean, a.m2 + delta * (value - mean), weight};
}
template <typename T, uint64_t chunk>
inline Welford<T> welford_combine(const Welford<T>& a, T value, WelfordHelper<T, chunk>*) {
    return welford_combine(a, value);
}
template <typename T, uint64_t chunk>
inline Welford<T> welford_combine(const Welford<T>& a, WelfordHelper<T, chunk>*) { return a; }
""",
    ),
    Helper(
        r"\b(CascadeSumHelper|cascade_sum_\w+)\b",
        """\
// A sum in chunks, whose sums are added up in turn: rounding errors stay small.
template <typename T, uint64_t chunk>
struct CascadeSumHelper {
    T inner = 0, outer = 0;
    uint64_t count = 0;
    CascadeSumHelper() = default;
    explicit CascadeSumHelper(uint64_t) {}
};
template <typename T, uint64_t chunk>
inline T cascade_sum_combine(T value, CascadeSumHelper<T, chunk>* sum) {
    sum->inner += value;
    if (++sum->count == (chunk > 256 ? 256 : chunk)) {
        sum->outer += sum->inner;
        sum->inner = 0;
        sum->count = 0;
    }
    return sum->inner;
}
template <typename T, uint64_t chunk>
inline T cascade_sum_final(CascadeSumHelper<T, chunk>* sum) { return sum->outer + sum->inner; }
""",
    ),
    Helper(
        r"\b(IndexValue|arg(max|min)_combine)\b",
        """\
template <typename T>
struct IndexValue {
    int64_t index = 0;
    T value{};
    IndexValue() = default;
    IndexValue(int64_t at, T what) : index(at), value(what) {}
};
// The first of equal values wins, and a NaN wins over numbers.
template <typename T>
inline IndexValue<T>& argmax_combine(IndexValue<T>& best, T value, int64_t index) {
    if (value < best.value) return best;  // nearly always
    const bool best_nan = best.value != best.value, nan = value != value;
    const bool equal = best.value == value || (best_nan && nan);
    const bool better = !best_nan && (nan || value > best.value);
    if (equal ? index < best.index : better) best = {index, value};
    return best;
}
template <typename T>
inline IndexValue<T>& argmin_combine(IndexValue<T>& best, T value, int64_t index) {
    if (value > best.value) return best;  // nearly always
    const bool best_nan = best.value != best.value, nan = value != value;
    const bool equal = best.value == value || (best_nan && nan);
    const bool better = !best_nan && (nan || value < best.value);
    if (equal ? index < best.index : better) best = {index, value};
    return best;
}
template <typename T>
inline IndexValue<T>& argmax_combine(IndexValue<T>& best, const IndexValue<T>& next) {
    return argmax_combine(best, next.value, next.index);
}
template <typename T>
inline IndexValue<T>& argmin_combine(IndexValue<T>& best, const IndexValue<T>& next) {
    return argmin_combine(best, next.value, next.index);
}
""",
    ),
    Helper(
        r"\batomic_add(_vec)?\(",
        """\
template <typename T>
inline void atomic_add(T* address, T value) {
    #pragma omp atomic
    *address += value;
}
""",
    ),
    Helper(
        r"\bbranchless::|\bAttention<",
        """\
namespace branchless {
template <typename To, typename From>
inline To same_bits(From from) {
    To to;
    std::memcpy(&to, &from, sizeof to);
    return to;
}
}
// To about one unit in the last place, and without branches: loops over them become vector code.
""",
    ),
    Helper(
        r"\bbranchless::(exp|tanh|erf)\(|\bAttention<",
        """\
namespace branchless {
inline float exp(float x) {
    const float whole = 12582912.0f;  // what is added to it is rounded to a whole number
    const float shifted = std::fma(x, 1.44269504f, whole), n = shifted - whole;
    const float r = std::fma(n, -1.42860677e-6f, std::fma(n, -0.693145752f, x));
    float p = std::fma(r, 1.38146000e-3f, 8.36871564e-3f);
    p = std::fma(p, r, 4.16683890e-2f);
    p = std::fma(p, r, 1.66665211e-1f);
    p = std::fma(p, r, 4.99999940e-1f);
    p = std::fma(p, r * r, r + 1);
    // The power is added to the exponent of p. Of tiny results 2^-64 of it are left for later.
    const bool tiny = x < -80.0f;
    const uint32_t power = same_bits<uint32_t>(shifted) + (tiny ? 64 : 0);
    const float near = same_bits<float>(same_bits<uint32_t>(p) + (power << 23));
    const float found = near * (tiny ? 0x1p-64f : 1.0f);
    const float above = x < -104.0f ? 0.0f : found;
    return x < 88.72283f ? above : x + std::numeric_limits<float>::infinity();  // a NaN stays one
}
inline double exp(double x) { return std::exp(x); }
}
""",
    ),
    Helper(
        r"\bbranchless::expm1\(",
        """\
namespace branchless {
inline float expm1(float x) {
    const float whole = 12582912.0f;  // what is added to it is rounded to a whole number
    const float shifted = std::fma(x, 1.44269504f, whole), n = shifted - whole;
    const float r = std::fma(n, -1.42860677e-6f, std::fma(n, -0.693145752f, x));
    float p = std::fma(r, 1.38146000e-3f, 8.36871564e-3f);
    p = std::fma(p, r, 4.16683890e-2f);
    p = std::fma(p, r, 1.66665211e-1f);
    p = std::fma(p, r, 4.99999940e-1f);
    p = std::fma(p, r * r, r);
    // Half of the power, as the whole may be too large for a float.
    const float half = same_bits<float>((same_bits<int32_t>(shifted) - 0x4b400000 + 126) << 23);
    const float found = 2 * std::fma(half, p, half - 0.5f);
    const float above = x < -18.0f ? -1.0f : found;
    return x < 88.72283f ? above : x + std::numeric_limits<float>::infinity();  // a NaN stays one
}
inline double expm1(double x) { return std::expm1(x); }
}
""",
    ),
    Helper(
        r"\bbranchless::log(1p)?\(",
        """\
namespace branchless {
inline float log(float x) {
    const bool tiny = x < 1.17549435e-38f;
    const int32_t bits = same_bits<int32_t>(tiny ? x * 8388608.0f : x) - 0x3f3504f3;
    const float n = static_cast<float>(bits >> 23) - (tiny ? 23.0f : 0.0f);
    const float r = same_bits<float>((bits & 0x7fffff) + 0x3f3504f3) - 1;
    float p = std::fma(r, 6.74660131e-2f, -1.16756409e-1f);
    p = std::fma(p, r, 1.18881747e-1f);
    p = std::fma(p, r, -1.24055915e-1f);
    p = std::fma(p, r, 1.42195508e-1f);
    p = std::fma(p, r, -1.66679963e-1f);
    p = std::fma(p, r, 2.00021192e-1f);
    p = std::fma(p, r, -2.50000089e-1f);
    p = std::fma(p, r, 3.33333135e-1f);
    p = std::fma(n, -2.12194440e-4f, std::fma(p * r, r * r, -0.5f * r * r));
    const float found = std::fma(n, 0.693359375f, p + r);
    const float infinite = std::numeric_limits<float>::infinity();
    const float positive = x == infinite ? infinite : found;
    return x > 0 ? positive : x == 0 ? -infinite : std::numeric_limits<float>::quiet_NaN();
}
inline double log(double x) { return std::log(x); }
}
""",
    ),
    Helper(
        r"\bbranchless::log1p\(",
        """\
namespace branchless {
inline float log1p(float x) {
    const float sum = 1 + x, rounded = (sum - 1) - x;
    const bool usual = sum > 0 && sum < std::numeric_limits<float>::infinity();
    const float found = log(sum) - (usual ? rounded / sum : 0.0f);
    return std::abs(x) < 1e-7f ? x : found;
}
inline double log1p(double x) { return std::log1p(x); }
}
""",
    ),
    Helper(
        r"\bbranchless::tanh\(",
        """\
namespace branchless {
inline float tanh(float x) {
    const float size = std::abs(x), square = x * x;
    float p = std::fma(square, -5.70499059e-3f, 2.06390899e-2f);
    p = std::fma(p, square, -5.37397154e-2f);
    p = std::fma(p, square, 1.33314416e-1f);
    p = std::fma(p, square, -3.33332807e-1f);
    const float near = std::fma(p * square, x, x);
    const float far = std::copysign(1 - 2 / (exp(2 * std::min(size, 10.0f)) + 1), x);
    return size < 0.625f ? near : far;
}
inline double tanh(double x) { return std::tanh(x); }
}
""",
    ),
    Helper(
        r"\bbranchless::erf\(",
        """\
namespace branchless {
inline float erf(float x) {
    const float size = std::min(std::abs(x), 4.0f), square = x * x;
    float p = std::fma(square, 7.85402663e-5f, -8.01024784e-4f);
    p = std::fma(p, square, 5.18833473e-3f);
    p = std::fma(p, square, -2.68538166e-2f);
    p = std::fma(p, square, 1.12835854e-1f);
    p = std::fma(p, square, -3.76126260e-1f);
    const float near = std::fma(std::fma(p, square, 0.128379107f), x, x);
    const float t = 1 / std::fma(0.5f, size, 1.0f);
    float q = std::fma(t, 5.43472581e-2f, -9.58566815e-2f);
    q = std::fma(q, t, -1.01473950e-1f);
    q = std::fma(q, t, 2.03370407e-1f);
    q = std::fma(q, t, 1.13470897e-1f);
    q = std::fma(q, t, 2.64724493e-1f);
    q = std::fma(q, t, 2.79387325e-1f);
    q = std::fma(q, t, 2.82266289e-1f) * t;
    const float far = std::copysign(1 - q * exp(-size * size), x);
    return size < 1 ? near : far;
}
inline double erf(double x) { return std::erf(x); }
}
""",
    ),
    Helper(
        r"\bbranchless::frexp\(",
        """\
namespace branchless {
inline float frexp(float x, int32_t* power) {
    const bool tiny = std::abs(x) < 1.17549435e-38f;
    const int32_t bits = same_bits<int32_t>(tiny ? x * 33554432.0f : x);
    const int32_t biased = bits >> 23 & 255;
    const bool usual = x != 0 && biased != 255;
    *power = (biased - 126 - (tiny ? 25 : 0)) * usual;
    return usual ? same_bits<float>((bits & ~(255 << 23)) | 126 << 23) : x;
}
inline double frexp(double x, int32_t* power) { return std::frexp(x, power); }
}
""",
    ),
    Helper(
        r"\bwhole_word\(",
        """\
// A condition whose origin g++ cannot see: loops become no vectors where it is known to be a byte.
inline int32_t whole_word(bool truth) {
    int32_t word = truth;
    asm("" : "+r"(word));
    return word;
}
""",
    ),
    Helper(
        r"\bapart\(",
        """\
// A place whose origin g++ cannot see: it would gather what neighbouring iterations load.
inline int64_t apart(int64_t place) {
    asm("" : "+r"(place));
    return place;
}
""",
    ),
    Helper(
        r"\bin_one<",
        """\
// One value out of those of all lanes, half of which are joined with the other half at once.
template <int64_t COUNT, typename T, typename Join>
inline T in_one(T* of, Join join) {
    #pragma omp simd
    for (int64_t i = 0; i < COUNT / 2; ++i) of[i] = join(of[i], of[i + COUNT / 2]);
    if constexpr (COUNT > 2) return in_one<COUNT / 2>(of, join);
    else return of[0];
}
""",
    ),
    Helper(
        r"\breduction\(largest:",
        """\
#pragma omp declare reduction(largest : float, double : \\
    omp_out = max_propagate_nan(omp_out, omp_in)) initializer(omp_priv = omp_orig)
""",
    ),
    Helper(
        r"\breduction\(smallest:",
        """\
#pragma omp declare reduction(smallest : float, double : \\
    omp_out = min_propagate_nan(omp_out, omp_in)) initializer(omp_priv = omp_orig)
""",
    ),
)


_TEMPLATES = {
    "vectors": r"\b(?:Product|Gram|Convolution|Depthwise|Attention|EmbeddingBag)<",
    "product": r"\b(?:Product|Gram|Convolution|Attention)<",
    "gram": r"\bGram<",
    "boxes": r"\b(?:Convolution|Depthwise)<",
    "convolution": r"\bConvolution<",
    "depthwise": r"\bDepthwise<",
    "attention": r"\bAttention<",
    "embedding_bag": r"\bEmbeddingBag<",
    "scan": r"\bScan<",
}


def helpers_for(body: str) -> str:
    """The headers, and the helpers that some kernels use."""
    used = [helper.text for helper in _HELPERS if re.search(helper.pattern, body)]
    used += [template(f"{name}.hpp") for name, use in _TEMPLATES.items() if re.search(use, body)]
    return "\n".join([_HEADER, *used])
