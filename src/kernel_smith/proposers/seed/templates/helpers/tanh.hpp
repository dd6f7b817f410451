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
