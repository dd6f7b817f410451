// C = A B, and bias if there is one, with sizes and layouts that the compiler knows. A tile of C
// stays in registers while it goes through a row of A and a column of B.
#if defined(__AVX512F__)
constexpr int64_t TILE_ROWS = 8, TILE_VECTORS = 3;
constexpr int64_t MANY_ROWS = 64;  // for which it pays to pack B however it lies
#elif defined(__AVX__)
constexpr int64_t TILE_ROWS = 6, TILE_VECTORS = 2;
constexpr int64_t MANY_ROWS = std::numeric_limits<int64_t>::max();
#else
constexpr int64_t TILE_ROWS = 8, TILE_VECTORS = 2;
constexpr int64_t MANY_ROWS = std::numeric_limits<int64_t>::max();
#endif
constexpr int64_t DEPTH = 256 /* of A and B in one go, or a quarter more */, FEW_ROWS = 24;
constexpr int64_t DOT_ROWS = 4, DOT_COLUMNS = 4;

// Elements of a matrix lie DOWN apart in a column and RIGHT apart in a row.
template <int64_t DOWN_, int64_t RIGHT_>
struct Layout {
    static constexpr int64_t DOWN = DOWN_, RIGHT = RIGHT_;

    // Copies WIDTH columns, one row below the other.
    template <int64_t WIDTH, int64_t TILE, typename T>
    static void pack(const T* b, int64_t, int64_t, int64_t depth, T* packed) {
        constexpr int64_t BLOCK = 16;  // so that neither side leaves the cache
        if (RIGHT == 1)
            for (int64_t k = 0; k < depth; ++k)
                for (int64_t j = 0; j < WIDTH; ++j) packed[k * TILE + j] = b[k * DOWN + j];
        else
            for (int64_t first = 0; first < depth; first += BLOCK)
                for (int64_t j = 0; j < WIDTH; ++j)
                    for (int64_t k = first; k < std::min(first + BLOCK, depth); ++k)
                        packed[k * TILE + j] = b[k * DOWN + j * RIGHT];
    }
};

template <typename T, int64_t ROWS, int64_t INNER, int64_t COLUMNS, typename A, typename B,
          typename C, typename Bias = Layout<0, 0>>
struct Product {
    typedef T Vector __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(T)), may_alias));
    static constexpr int64_t LANES = VECTOR_BYTES / sizeof(T), TILE_COLUMNS = TILE_VECTORS * LANES;
    static constexpr int64_t LAST = COLUMNS % TILE_COLUMNS;
    static constexpr int64_t PARTS = std::max<int64_t>(1, (INNER + 3 * DEPTH / 4 - 1) / DEPTH);
    static constexpr int64_t DEEPEST = (INNER + PARTS - 1) / PARTS;  // so that none is much less deep
    // Rows that lie a large power of two apart push each other out of the cache.
    static constexpr bool CROWDED = A::RIGHT == 1 && A::DOWN * sizeof(T) % 2048 == 0;
    static constexpr bool SPREAD = B::RIGHT != 1 || B::DOWN * sizeof(T) % 2048 == 0 || ROWS >= MANY_ROWS;

    static void multiply(const T* a, const T* b, T* c, const T* bias = nullptr, int64_t batch = 1,
                         int64_t a_step = 0, int64_t b_step = 0, int64_t c_step = 0) {
        if constexpr (A::RIGHT == 1 && B::DOWN == 1 && ROWS <= FEW_ROWS) {
            dot_products(a, b, c, bias, batch, a_step, b_step, c_step);
        } else if constexpr (CROWDED && ROWS > TILE_ROWS) {
            constexpr int64_t APART = INNER + LANES;
            const std::unique_ptr<T[]> rows(new T[batch * ROWS * APART]);
            #pragma omp parallel for collapse(2)
            for (int64_t i = 0; i < batch; ++i)
                for (int64_t r = 0; r < ROWS; ++r)
                    std::copy_n(a + i * a_step + r * A::DOWN, INNER, rows.get() + (i * ROWS + r) * APART);
            each_column<Layout<APART, 1>>(rows.get(), b, c, bias, batch, ROWS * APART, b_step, c_step);
        } else {
            each_column<A>(a, b, c, bias, batch, a_step, b_step, c_step);
        }
    }

    // One product by one thread; `onto` adds it to what C holds.
    static void alone(const T* a, const T* b, T* c, bool onto) {
        for (int64_t top = 0; top < INNER; top += DEEPEST)
            for (int64_t j = 0; j < COLUMNS; j += TILE_COLUMNS)
                some_columns<A>(a, b, c, nullptr, j, top, onto);
    }

    // A tile of C from rows of A and columns of B, which are STEP apart and a whole number of vectors.
    template <typename Left, int64_t HEIGHT, int64_t WIDTH, int64_t STEP>
    static void tile(const T* a, const T* b, T* c, int64_t depth, bool add) {
        constexpr int64_t VECTORS = (WIDTH + LANES - 1) / LANES;
        Vector sums[HEIGHT][VECTORS] = {};
        for (int64_t k = 0; k < depth; ++k) {
            Vector right[VECTORS];
            #pragma GCC unroll 3
            for (int64_t v = 0; v < VECTORS; ++v)
                right[v] = *reinterpret_cast<const Vector*>(b + k * STEP + v * LANES);
            #pragma GCC unroll 12
            for (int64_t r = 0; r < HEIGHT; ++r)
                #pragma GCC unroll 3
                for (int64_t v = 0; v < VECTORS; ++v)
                    sums[r][v] += a[r * Left::DOWN + k * Left::RIGHT] * right[v];
        }
        if constexpr (WIDTH == VECTORS * LANES && C::RIGHT == 1) {
            #pragma GCC unroll 12
            for (int64_t r = 0; r < HEIGHT; ++r)
                #pragma GCC unroll 3
                for (int64_t v = 0; v < VECTORS; ++v) {
                    Vector& place = *reinterpret_cast<Vector*>(c + r * C::DOWN + v * LANES);
                    place = add ? place + sums[r][v] : sums[r][v];
                }
        } else {
            alignas(64) T found[HEIGHT][VECTORS * LANES];
            std::memcpy(found, sums, sizeof found);
            for (int64_t r = 0; r < HEIGHT; ++r)
                for (int64_t j = 0; j < WIDTH; ++j) {
                    T& place = c[r * C::DOWN + j * C::RIGHT];
                    place = add ? place + found[r][j] : found[r][j];
                }
        }
    }

  private:
    // For so few rows it does not pay to pack B, whose columns are in one piece as they are.
    static void dot_products(const T* a, const T* b, T* c, const T* bias, int64_t batch,
                             int64_t a_step, int64_t b_step, int64_t c_step) {
        constexpr int64_t REST = COLUMNS % DOT_COLUMNS;
        #pragma omp parallel for collapse(2)
        for (int64_t i = 0; i < batch; ++i)
            for (int64_t j = 0; j < COLUMNS; j += DOT_COLUMNS) {
                const T *left = a + i * a_step, *right = b + i * b_step + j * B::RIGHT;
                T* place = c + i * c_step + j * C::RIGHT;
                const T* start = bias ? bias + j * Bias::RIGHT : nullptr;
                if (j + DOT_COLUMNS <= COLUMNS) all_rows<DOT_COLUMNS>(left, right, place, start);
                else if constexpr (REST > 0) all_rows<REST>(left, right, place, start);
            }
    }

    template <int64_t WIDTH>
    static void all_rows(const T* a, const T* b, T* c, const T* bias) {
        constexpr int64_t REST = ROWS % DOT_ROWS;
        for (int64_t r = 0; r + DOT_ROWS <= ROWS; r += DOT_ROWS)
            dot_tile<DOT_ROWS, WIDTH>(a + r * A::DOWN, b, c + r * C::DOWN, bias ? bias + r * Bias::DOWN : nullptr);
        if constexpr (REST > 0)
            dot_tile<REST, WIDTH>(a + (ROWS - REST) * A::DOWN, b, c + (ROWS - REST) * C::DOWN,
                                  bias ? bias + (ROWS - REST) * Bias::DOWN : nullptr);
    }

    template <int64_t HEIGHT, int64_t WIDTH>
    static void dot_tile(const T* a, const T* b, T* c, const T* bias) {
        constexpr int64_t WHOLE = INNER / LANES * LANES;
        Vector sums[HEIGHT][WIDTH] = {};
        for (int64_t k = 0; k < WHOLE; k += LANES) {
            Vector left[HEIGHT];
            #pragma GCC unroll 4
            for (int64_t r = 0; r < HEIGHT; ++r) left[r] = *reinterpret_cast<const Vector*>(a + r * A::DOWN + k);
            #pragma GCC unroll 4
            for (int64_t j = 0; j < WIDTH; ++j) {
                const Vector right = *reinterpret_cast<const Vector*>(b + j * B::RIGHT + k);
                #pragma GCC unroll 4
                for (int64_t r = 0; r < HEIGHT; ++r) sums[r][j] += left[r] * right;
            }
        }
        for (int64_t r = 0; r < HEIGHT; ++r)
            for (int64_t j = 0; j < WIDTH; ++j) {
                T sum = bias ? bias[r * Bias::DOWN + j * Bias::RIGHT] : T(0);
                for (int64_t lane = 0; lane < LANES; ++lane) sum += sums[r][j][lane];
                for (int64_t k = WHOLE; k < INNER; ++k) sum += a[r * A::DOWN + k] * b[j * B::RIGHT + k];
                c[r * C::DOWN + j * C::RIGHT] = sum;
            }
    }

    // Depth by depth, so that all that is read of A again and again stays in the cache.
    template <typename Left>
    static void each_column(const T* a, const T* b, T* c, const T* bias, int64_t batch,
                            int64_t a_step, int64_t b_step, int64_t c_step) {
        for (int64_t top = 0; top < INNER; top += DEEPEST)
            #pragma omp parallel for collapse(2)
            for (int64_t i = 0; i < batch; ++i)
                for (int64_t j = 0; j < COLUMNS; j += TILE_COLUMNS)
                    some_columns<Left>(a + i * a_step, b + i * b_step, c + i * c_step, bias, j, top, false);
    }

    template <typename Left>
    static void some_columns(const T* a, const T* b, T* c, const T* bias, int64_t column, int64_t top, bool onto) {
        const T *left = a + top * Left::RIGHT, *right = b + top * B::DOWN + column * B::RIGHT;
        const T* start = bias && top == 0 ? bias + column * Bias::RIGHT : nullptr;
        T* place = c + column * C::RIGHT;
        const int64_t depth = std::min(DEEPEST, INNER - top);
        const bool add = bias || onto || top > 0;
        if (column + TILE_COLUMNS <= COLUMNS) columns<Left, TILE_COLUMNS>(left, right, place, start, column, top, depth, add);
        else if constexpr (LAST > 0) columns<Left, LAST>(left, right, place, start, column, top, depth, add);
    }

    template <typename Left, int64_t WIDTH>
    static void columns(const T* a, const T* b, T* c, const T* bias, int64_t column, int64_t top,
                        int64_t depth, bool add) {
        for (int64_t r = 0; bias && r < ROWS; ++r)
            for (int64_t j = 0; j < WIDTH; ++j)
                c[r * C::DOWN + j * C::RIGHT] = bias[r * Bias::DOWN + j * Bias::RIGHT];
        constexpr int64_t WHOLE = (WIDTH + LANES - 1) / LANES * LANES;
        if constexpr (SPREAD || WIDTH < WHOLE) {
            alignas(64) T packed[DEEPEST * WHOLE];
            for (int64_t k = 0; k < depth; ++k) std::fill_n(packed + k * WHOLE + WIDTH, WHOLE - WIDTH, T(0));
            B::template pack<WIDTH, WHOLE>(b, column, top, depth, packed);
            strips<Left, WIDTH, WHOLE>(a, packed, c, depth, add);
        } else {
            strips<Left, WIDTH, B::DOWN>(a, b, c, depth, add);
        }
    }

    template <typename Left, int64_t WIDTH, int64_t STEP>
    static void strips(const T* a, const T* b, T* c, int64_t depth, bool add) {
        constexpr int64_t REST = ROWS % TILE_ROWS, LAST_STRIP = ROWS - REST;
        for (int64_t r = 0; r < LAST_STRIP; r += TILE_ROWS)
            tile<Left, TILE_ROWS, WIDTH, STEP>(a + r * Left::DOWN, b, c + r * C::DOWN, depth, add);
        if constexpr (REST > 0)
            tile<Left, REST, WIDTH, STEP>(a + LAST_STRIP * Left::DOWN, b, c + LAST_STRIP * C::DOWN, depth, add);
    }
};
