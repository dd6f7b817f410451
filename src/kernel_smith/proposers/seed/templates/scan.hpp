// Running sums or products of COUNT elements that lie INNER apart. Several at once, as each waits for
// the one before: neighbours where elements lie apart, or rows. Those of floats are doubles, as the library's.
template <typename T, int64_t OUTER, int64_t COUNT, int64_t INNER>
struct Scan {
    static void sum(const T* x, T* y) { all<true>(x, y); }
    static void multiply(const T* x, T* y) { all<false>(x, y); }

  private:
    static constexpr bool ROWS = INNER == 1;
    static constexpr int64_t ROWS_AT_ONCE = 8, COLUMNS_AT_ONCE = 64;
    static constexpr int64_t AT_ONCE = ROWS ? ROWS_AT_ONCE : COLUMNS_AT_ONCE, APART = ROWS ? COUNT : 1;
    static constexpr int64_t OUTERS = ROWS ? 1 : OUTER, LINES = ROWS ? OUTER : INNER;

    template <bool SUM>
    static void all(const T* x, T* y) {
        #pragma omp parallel for collapse(2)
        for (int64_t outer = 0; outer < OUTERS; ++outer)
            for (int64_t line = 0; line < LINES; line += AT_ONCE) {
                const int64_t begin = outer * COUNT * INNER + line * APART;
                some<AT_ONCE, SUM>(x + begin, y + begin, LINES - line);
            }
    }

    // As many as there are left, of which there may be fewer than so many.
    template <int64_t LANES, bool SUM>
    static void some(const T* x, T* y, int64_t left) {
        if constexpr (LANES > 1) {
            if (left < LANES) {
                some<LANES / 2, SUM>(x, y, left);
                if (left > LANES / 2)
                    some<LANES / 2, SUM>(x + LANES / 2 * APART, y + LANES / 2 * APART, left - LANES / 2);
                return;
            }
        }
        double found[LANES];
        std::fill_n(found, LANES, SUM ? 0 : 1);
        for (int64_t i = 0; i < COUNT; ++i)
            #pragma GCC unroll 8
            for (int64_t lane = 0; lane < LANES; ++lane) {
                const double next = x[i * INNER + lane * APART];
                found[lane] = SUM ? found[lane] + next : found[lane] * next;
                y[i * INNER + lane * APART] = static_cast<T>(found[lane]);
            }
    }
};
