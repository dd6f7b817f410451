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
