// C = X^T X: what lies below the diagonal is a mirror of what lies above it, which alone is computed.
template <typename T, int64_t SIZE, int64_t INNER, typename X, typename C>
struct Gram {
    static constexpr int64_t LANES = VECTOR_BYTES / sizeof(T), TILE_COLUMNS = TILE_VECTORS * LANES;
    // Tiles begin at the diagonal, and reach beyond the last column.
    static constexpr int64_t WIDE = (SIZE + std::max(LANES, TILE_ROWS) + LANES - 1) / LANES * LANES;
    using Upper = Product<T, SIZE, INNER, SIZE, Layout<1, WIDE>, Layout<WIDE, 1>, Layout<WIDE, 1>>;
    static constexpr bool READABLE = X::RIGHT == 1 && X::DOWN * sizeof(T) % 2048 != 0;  // where it lies

    static void multiply(const T* x, T* c, int64_t batch, int64_t x_step, int64_t c_step) {
        const std::unique_ptr<T[]> packed(new T[Upper::DEEPEST * WIDE]()), upper(new T[(SIZE + TILE_ROWS) * WIDE]);
        for (int64_t i = 0; i < batch; ++i) {
            for (int64_t top = 0; top < INNER; top += Upper::DEEPEST) {
                const int64_t depth = std::min(Upper::DEEPEST, INNER - top);
                const T* rows = x + i * x_step + top * X::DOWN;
                if (READABLE && (INNER - top - depth) * X::DOWN >= WIDE) {
                    each_strip<X::DOWN>(rows, upper.get(), depth, top > 0);
                } else {
                    X::template pack<SIZE, WIDE>(rows, 0, top, depth, packed.get());
                    each_strip<WIDE>(packed.get(), upper.get(), depth, top > 0);
                }
            }
            mirror(upper.get(), c + i * c_step);
        }
    }

  private:
    template <int64_t STEP>
    static void each_strip(const T* x, T* upper, int64_t depth, bool add) {
        #pragma omp parallel for schedule(dynamic)
        for (int64_t row = 0; row < SIZE; row += TILE_ROWS)
            for (int64_t j = row; j < SIZE; j += TILE_COLUMNS) {
                T* c = upper + row * WIDE + j;
                if (SIZE - j > 2 * LANES && TILE_VECTORS == 3) tile<TILE_COLUMNS, STEP>(x + row, x + j, c, depth, add);
                else if (SIZE - j > LANES) tile<2 * LANES, STEP>(x + row, x + j, c, depth, add);
                else tile<LANES, STEP>(x + row, x + j, c, depth, add);
            }
    }

    template <int64_t WIDTH, int64_t STEP>
    static void tile(const T* a, const T* b, T* c, int64_t depth, bool add) {
        Upper::template tile<Layout<1, STEP>, TILE_ROWS, WIDTH, STEP>(a, b, c, depth, add);
    }

    static void mirror(const T* upper, T* c) {
        for (int64_t row = 0; row < SIZE; ++row)
            for (int64_t j = row; j < SIZE; ++j)
                c[row * C::DOWN + j * C::RIGHT] = c[j * C::DOWN + row * C::RIGHT] = upper[row * WIDE + j];
    }
};
