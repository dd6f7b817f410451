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
