// Running sums of COUNT elements that lie INNER apart. Several at once, as each waits for the sum before:
// neighbours where elements lie apart, or rows. Sums of floats are doubles, as the library's.
template <typename T, int64_t OUTER, int64_t COUNT, int64_t INNER>
struct Scan {
    static void sum(const T* x, T* y) {
        #pragma omp parallel for collapse(2)
        for (int64_t outer = 0; outer < OUTERS; ++outer)
            for (int64_t line = 0; line < LINES; line += AT_ONCE) {
                const int64_t begin = outer * COUNT * INNER + line * APART;
                some<AT_ONCE>(x + begin, y + begin, LINES - line);
            }
    }

  private:
    static constexpr bool ROWS = INNER == 1;
    static constexpr int64_t ROWS_AT_ONCE = 8, COLUMNS_AT_ONCE = 64;
    static constexpr int64_t AT_ONCE = ROWS ? ROWS_AT_ONCE : COLUMNS_AT_ONCE, APART = ROWS ? COUNT : 1;
    static constexpr int64_t OUTERS = ROWS ? 1 : OUTER, LINES = ROWS ? OUTER : INNER;

    // As many as there are left, of which there may be fewer than so many.
    template <int64_t LANES>
    static void some(const T* x, T* y, int64_t left) {
        if constexpr (LANES > 1) {
            if (left < LANES) {
                some<LANES / 2>(x, y, left);
                if (left > LANES / 2)
                    some<LANES / 2>(x + LANES / 2 * APART, y + LANES / 2 * APART, left - LANES / 2);
                return;
            }
        }
        double sums[LANES] = {};
        for (int64_t i = 0; i < COUNT; ++i)
            #pragma GCC unroll 8
            for (int64_t lane = 0; lane < LANES; ++lane) {
                sums[lane] += x[i * INNER + lane * APART];
                y[i * INNER + lane * APART] = static_cast<T>(sums[lane]);
            }
    }
};
