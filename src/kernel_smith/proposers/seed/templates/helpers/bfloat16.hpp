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
