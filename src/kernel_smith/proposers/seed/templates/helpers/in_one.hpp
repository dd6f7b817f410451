// One value out of those of all lanes, half of which are joined with the other half at once.
template <int64_t COUNT, typename T, typename Join>
inline T in_one(T* of, Join join) {
    #pragma omp simd
    for (int64_t i = 0; i < COUNT / 2; ++i) of[i] = join(of[i], of[i + COUNT / 2]);
    if constexpr (COUNT > 2) return in_one<COUNT / 2>(of, join);
    else return of[0];
}
