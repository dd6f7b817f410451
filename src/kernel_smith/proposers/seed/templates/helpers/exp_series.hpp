namespace branchless {
// e^r - 1 - r over r^2, where r is what is left of x when a whole power of two was taken out of e^x;
// `shifted` ends in the bits of that power.
inline float exp_series(float x, float& shifted, float& r) {
    const float whole = 12582912.0f;  // what is added to it is rounded to a whole number
    shifted = std::fma(x, 1.44269504f, whole);
    const float n = shifted - whole;
    r = std::fma(n, -1.42860677e-6f, std::fma(n, -0.693145752f, x));
    float p = std::fma(r, 1.38146000e-3f, 8.36871564e-3f);
    p = std::fma(p, r, 4.16683890e-2f);
    p = std::fma(p, r, 1.66665211e-1f);
    return std::fma(p, r, 4.99999940e-1f);
}
}
