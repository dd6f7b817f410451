// Mean and sum of squared differences, one value or one part at a time.
template <typename T>
struct Welford { T mean = 0; T m2 = 0; T weight = 0; };
template <typename T, uint64_t chunk>
struct WelfordHelper { WelfordHelper() = default; explicit WelfordHelper(uint64_t) {} };
template <typename T>
inline Welford<T> welford_combine(const Welford<T>& a, const Welford<T>& b, bool = false) {
    const T weight = a.weight + b.weight;
    if (weight == 0) return a;
    const T delta = b.mean - a.mean;
    const T share = b.weight / weight;
    return {a.mean + delta * share, a.m2 + b.m2 + delta * delta * a.weight * share, weight};
}
template <typename T>
inline Welford<T> welford_combine(const Welford<T>& a, T value) {
    const T weight = a.weight + 1;
    const T delta = value - a.mean;
    const T mean = a.mean + delta / weight;
    return {mean, a.m2 + delta * (value - mean), weight};
}
template <typename T, uint64_t chunk>
inline Welford<T> welford_combine(const Welford<T>& a, T value, WelfordHelper<T, chunk>*) {
    return welford_combine(a, value);
}
template <typename T, uint64_t chunk>
inline Welford<T> welford_combine(const Welford<T>& a, WelfordHelper<T, chunk>*) { return a; }
