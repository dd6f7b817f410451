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
