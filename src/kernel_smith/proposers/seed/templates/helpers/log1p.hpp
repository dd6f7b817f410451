namespace branchless {
inline float log1p(float x) {
    const float sum = 1 + x, rounded = (sum - 1) - x;
    const bool usual = sum > 0 && sum < std::numeric_limits<float>::infinity();
    const float found = log(sum) - (usual ? rounded / sum : 0.0f);
    return std::abs(x) < 1e-7f ? x : found;
}
inline double log1p(double x) { return std::log1p(x); }
}
