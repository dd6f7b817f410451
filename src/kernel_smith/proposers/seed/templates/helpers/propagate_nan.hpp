// Two choices rather than one by two conditions, which g++ would join as single bytes.
template <typename T>
inline T max_propagate_nan(T a, T b) { const T larger = a > b ? a : b; return a != a ? a : larger; }
template <typename T>
inline T min_propagate_nan(T a, T b) { const T less = a < b ? a : b; return a != a ? a : less; }
