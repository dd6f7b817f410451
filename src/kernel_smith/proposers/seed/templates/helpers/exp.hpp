namespace branchless {
inline float exp(float x) {
    float shifted, r;
    const float series = exp_series(x, shifted, r), p = std::fma(series, r * r, r + 1);
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
