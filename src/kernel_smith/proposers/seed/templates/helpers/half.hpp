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
