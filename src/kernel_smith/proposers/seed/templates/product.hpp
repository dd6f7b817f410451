// C = A B, and bias if there is one, with sizes and layouts that the compiler knows. A tile of C
// stays in registers while it goes through a row of A and a column of B.
#if defined(__AVX512F__)
constexpr int64_t VECTOR_BYTES = 64, TILE_ROWS = 12;
#elif defined(__AVX__)
constexpr int64_t VECTOR_BYTES = 32, TILE_ROWS = 6;
#else
constexpr int64_t VECTOR_BYTES = 16, TILE_ROWS = 8;
#endif
constexpr int64_t TILE_VECTORS = 2, DEPTH = 256 /* of A and B in one go */, FEW_ROWS = 4;

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
    static constexpr int64_t LAST = COLUMNS % TILE_COLUMNS, DEEPEST = INNER < DEPTH ? INNER : DEPTH;
    // Rows that lie a large power of two apart push each other out of the cache.
    static constexpr bool CROWDED = A::RIGHT == 1 && A::DOWN * sizeof(T) % 2048 == 0;
    static constexpr bool SPREAD = B::RIGHT != 1 || B::DOWN * sizeof(T) % 2048 == 0;

    static void multiply(const T* a, const T* b, T* c, const T* bias = nullptr, int64_t batch = 1,
                         int64_t a_step = 0, int64_t b_step = 0, int64_t c_step = 0) {
        if constexpr (A::RIGHT == 1 && B::DOWN == 1 && ROWS <= FEW_ROWS) {
            dot_products(a, b, c, bias, batch, a_step, b_step, c_step);
        } else if constexpr (CROWDED && ROWS > TILE_ROWS) {
            const std::unique_ptr<T[]> strips(new T[batch * STRIPS * TILE_ROWS * INNER]);
            const int64_t step = STRIPS * TILE_ROWS * INNER;
            #pragma omp parallel for collapse(2)
            for (int64_t i = 0; i < batch; ++i)
                for (int64_t s = 0; s < STRIPS; ++s)
                    pack_strip(a + i * a_step, strips.get() + i * step, s * TILE_ROWS);
            using Packed = Layout<1, TILE_ROWS>;
            each_column<Packed, TILE_ROWS * INNER>(strips.get(), b, c, bias, batch, step, b_step, c_step);
        } else {
            each_column<A, TILE_ROWS * A::DOWN>(a, b, c, bias, batch, a_step, b_step, c_step);
        }
    }

    // One product by one thread; `onto` adds it to what C holds.
    static void alone(const T* a, const T* b, T* c, bool onto) {
        constexpr int64_t STRIP = TILE_ROWS * A::DOWN;
        for (int64_t j = 0; j + TILE_COLUMNS <= COLUMNS; j += TILE_COLUMNS)
            columns<A, STRIP, TILE_COLUMNS>(a, b + j * B::RIGHT, c + j * C::RIGHT, nullptr, j, onto);
        if constexpr (LAST > 0) {
            constexpr int64_t j = COLUMNS - LAST;
            columns<A, STRIP, LAST>(a, b + j * B::RIGHT, c + j * C::RIGHT, nullptr, j, onto);
        }
    }

  private:
    static constexpr int64_t STRIPS = (ROWS + TILE_ROWS - 1) / TILE_ROWS;

    static void pack_strip(const T* a, T* strips, int64_t from) {
        T* strip = strips + from * INNER;
        for (int64_t r = 0; r < std::min(TILE_ROWS, ROWS - from); ++r)
            for (int64_t k = 0; k < INNER; ++k) strip[k * TILE_ROWS + r] = a[(from + r) * A::DOWN + k];
    }

    // For so few rows it does not pay to pack B, whose columns are in one piece as they are.
    static void dot_products(const T* a, const T* b, T* c, const T* bias, int64_t batch,
                             int64_t a_step, int64_t b_step, int64_t c_step) {
        #pragma omp parallel for collapse(2)
        for (int64_t i = 0; i < batch; ++i)
            for (int64_t j = 0; j < COLUMNS; ++j)
                for (int64_t r = 0; r < ROWS; ++r) {
                    const T *row = a + i * a_step + r * A::DOWN, *column = b + i * b_step + j * B::RIGHT;
                    T sum = bias ? bias[r * Bias::DOWN + j * Bias::RIGHT] : T(0);
                    #pragma omp simd reduction(+ : sum)
                    for (int64_t k = 0; k < INNER; ++k) sum += row[k] * column[k];
                    c[i * c_step + r * C::DOWN + j * C::RIGHT] = sum;
                }
    }

    template <typename Left, int64_t STRIP>
    static void each_column(const T* a, const T* b, T* c, const T* bias, int64_t batch,
                            int64_t a_step, int64_t b_step, int64_t c_step) {
        #pragma omp parallel for collapse(2)
        for (int64_t i = 0; i < batch; ++i)
            for (int64_t j = 0; j < COLUMNS; j += TILE_COLUMNS) {
                const T *left = a + i * a_step, *right = b + i * b_step + j * B::RIGHT;
                T* place = c + i * c_step + j * C::RIGHT;
                const T* start = bias ? bias + j * Bias::RIGHT : nullptr;
                if (j + TILE_COLUMNS <= COLUMNS) columns<Left, STRIP, TILE_COLUMNS>(left, right, place, start, j);
                else if constexpr (LAST > 0) columns<Left, STRIP, LAST>(left, right, place, start, j);
            }
    }

    template <typename Left, int64_t STRIP, int64_t WIDTH>
    static void columns(const T* a, const T* b, T* c, const T* bias, int64_t column, bool onto = false) {
        for (int64_t r = 0; bias && r < ROWS; ++r)
            for (int64_t j = 0; j < WIDTH; ++j)
                c[r * C::DOWN + j * C::RIGHT] = bias[r * Bias::DOWN + j * Bias::RIGHT];
        for (int64_t top = 0; top < INNER; top += DEPTH) {
            const int64_t depth = std::min(DEPTH, INNER - top);
            const bool add = bias || onto || top > 0;
            if constexpr (SPREAD || WIDTH < TILE_COLUMNS) {
                alignas(64) T packed[DEEPEST * TILE_COLUMNS];
                if (WIDTH < TILE_COLUMNS) std::memset(packed, 0, sizeof(T) * depth * TILE_COLUMNS);
                B::template pack<WIDTH, TILE_COLUMNS>(b + top * B::DOWN, column, top, depth, packed);
                strips<Left, STRIP, WIDTH, TILE_COLUMNS>(a + top * Left::RIGHT, packed, c, depth, add);
            } else {
                strips<Left, STRIP, WIDTH, B::DOWN>(a + top * Left::RIGHT, b + top * B::DOWN, c, depth, add);
            }
        }
    }

    template <typename Left, int64_t STRIP, int64_t WIDTH, int64_t STEP>
    static void strips(const T* a, const T* b, T* c, int64_t depth, bool add) {
        constexpr int64_t WHOLE = ROWS / TILE_ROWS, REST = ROWS % TILE_ROWS;
        for (int64_t s = 0; s < WHOLE; ++s)
            tile<Left, TILE_ROWS, WIDTH, STEP>(a + s * STRIP, b, c + s * TILE_ROWS * C::DOWN, depth, add);
        if constexpr (REST > 0)
            tile<Left, REST, WIDTH, STEP>(a + WHOLE * STRIP, b, c + WHOLE * TILE_ROWS * C::DOWN, depth, add);
    }

    template <typename Left, int64_t HEIGHT, int64_t WIDTH, int64_t STEP>
    static void tile(const T* a, const T* b, T* c, int64_t depth, bool add) {
        constexpr int64_t VECTORS = (WIDTH + LANES - 1) / LANES;
        Vector sums[HEIGHT][VECTORS] = {};
        for (int64_t k = 0; k < depth; ++k) {
            Vector right[VECTORS];
            #pragma GCC unroll 2
            for (int64_t v = 0; v < VECTORS; ++v)
                right[v] = *reinterpret_cast<const Vector*>(b + k * STEP + v * LANES);
            #pragma GCC unroll 12
            for (int64_t r = 0; r < HEIGHT; ++r)
                #pragma GCC unroll 2
                for (int64_t v = 0; v < VECTORS; ++v)
                    sums[r][v] += a[r * Left::DOWN + k * Left::RIGHT] * right[v];
        }
        if constexpr (WIDTH == VECTORS * LANES && C::RIGHT == 1) {
            #pragma GCC unroll 12
            for (int64_t r = 0; r < HEIGHT; ++r)
                #pragma GCC unroll 2
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
};
