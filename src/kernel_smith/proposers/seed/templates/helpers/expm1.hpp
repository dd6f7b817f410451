namespace branchless {
inline float expm1(float x) {
    float shifted, r;
    const float series = exp_series(x, shifted, r), p = std::fma(series, r * r, r);
    // Half of the power, as the whole may be too large for a float.
    const float half = same_bits<float>((same_bits<int32_t>(shifted) - 0x4b400000 + 126) << 23);
    const float found = 2 * std::fma(half, p, half - 0.5f);
    const float above = x < -18.0f ? -1.0f : found;
    return x < 88.72283f ? above : x + std::numeric_limits<float>::infinity();  // a NaN stays one
}
inline double expm1(double x) { return std::expm1(x); }
}
