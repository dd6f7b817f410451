// Sums of rows of a table, bag by bag: a sum stays in registers while its rows come by.
template <typename T, typename Index, int64_t FEATURES, int64_t IDS, int64_t OFFSETS, int64_t BAGS, bool MEAN>
struct EmbeddingBag {
    static void sum(const T* table, const Index* ids, const Index* offsets, const T* weights, T* y) {
        #pragma omp parallel for
        for (int64_t bag = 0; bag < BAGS; ++bag) {
            const int64_t begin = offsets[bag], end = bag + 1 < OFFSETS ? int64_t(offsets[bag + 1]) : IDS;
            const T share = MEAN && end > begin ? T(1) / (end - begin) : T(1);
            some<0>(table, ids, weights, begin, end, share, y + bag * FEATURES);
        }
    }

  private:
    static constexpr int64_t lanes() {
        int64_t count = VECTOR_BYTES / sizeof(T);
        while (count > FEATURES) count /= 2;
        return count;
    }
    static constexpr int64_t LANES = lanes(), VECTORS = (FEATURES + LANES - 1) / LANES;
    static constexpr int64_t AT_ONCE = 8, AHEAD = 8 /* rows that are asked for early */;
    typedef T Vector __attribute__((vector_size(LANES * sizeof(T)), aligned(sizeof(T)), may_alias));

    // The last vector begins early enough to end with the row.
    static constexpr int64_t place(int64_t v) { return std::min(v * LANES, FEATURES - LANES); }

    template <int64_t FIRST>
    static void some(const T* table, const Index* ids, const T* weights, int64_t begin, int64_t end, T share, T* y) {
        constexpr int64_t COUNT = std::min(AT_ONCE, VECTORS - FIRST);
        Vector sums[COUNT] = {};
        for (int64_t i = begin; i < end; ++i) {
            const T* row = table + ids[i] * FEATURES;
            const T* later = table + ids[std::min(i + AHEAD, IDS - 1)] * FEATURES;
            const T weight = weights ? weights[i] : T(1);
            #pragma GCC unroll 8
            for (int64_t v = 0; v < COUNT; ++v) {
                __builtin_prefetch(later + place(FIRST + v));
                sums[v] += weight * *reinterpret_cast<const Vector*>(row + place(FIRST + v));
            }
        }
        #pragma GCC unroll 8
        for (int64_t v = 0; v < COUNT; ++v) *reinterpret_cast<Vector*>(y + place(FIRST + v)) = share * sums[v];
        if constexpr (FIRST + COUNT < VECTORS) some<FIRST + COUNT>(table, ids, weights, begin, end, share, y);
    }
};
