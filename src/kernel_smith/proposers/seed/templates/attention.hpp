// Attention, a block of rows at a time: scores of a block of keys, what they weigh, and the sum of
// values so far. Scores lie key by key, so that all loops over them are vectors over the rows.

// How far elements lie apart from batch to batch, head to head, row to row, and within a row.
template <int64_t BATCH_, int64_t HEAD_, int64_t ROW_, int64_t ELEMENT_>
struct Heads {
    static constexpr int64_t BATCH = BATCH_, HEAD = HEAD_, ROW = ROW_, ELEMENT = ELEMENT_;
};

template <typename T, int64_t BATCH, int64_t HEADS, int64_t ROWS, int64_t KEYS, int64_t WIDTH,
          int64_t VALUES, bool CAUSAL, bool MASKED, typename Q, typename K, typename V, typename Y,
          typename M = Heads<0, 0, 0, 0>>
struct Attention {
    static constexpr int64_t LANES = VECTOR_BYTES / sizeof(T), BLOCK = ROWS > LANES ? 2 * LANES : LANES;
    // Small blocks waste little of what causal attention does not look at.
    static constexpr int64_t KEY_BLOCK = std::min(KEYS, CAUSAL ? BLOCK : int64_t(96));
    static constexpr T LOWEST = -std::numeric_limits<T>::infinity();

    static void attend(const T* q, const T* k, const T* v, T* y, const T* mask, T scale) {
        #pragma omp parallel for collapse(3)
        for (int64_t b = 0; b < BATCH; ++b)
            for (int64_t h = 0; h < HEADS; ++h)
                for (int64_t first = 0; first < ROWS; first += BLOCK) {
                    Block block(q + b * Q::BATCH + h * Q::HEAD, first, scale);
                    block.see(k + b * K::BATCH + h * K::HEAD, v + b * V::BATCH + h * V::HEAD,
                              mask + b * M::BATCH + h * M::HEAD);
                    block.write(y + b * Y::BATCH + h * Y::HEAD);
                }
    }

  private:
    struct Block {
        alignas(64) T query[WIDTH * BLOCK], sums[BLOCK * VALUES] = {}, highest[BLOCK], total[BLOCK] = {};
        const int64_t first, count;

        Block(const T* q, int64_t first_, T scale) : first(first_), count(std::min(BLOCK, ROWS - first_)) {
            for (int64_t w = 0; w < WIDTH; ++w)
                for (int64_t r = 0; r < BLOCK; ++r)
                    query[w * BLOCK + r] = r < count ? scale * q[(first + r) * Q::ROW + w * Q::ELEMENT] : T(0);
            std::fill_n(highest, BLOCK, LOWEST);
        }

        void see(const T* k, const T* v, const T* mask) {
            constexpr int64_t REST = KEYS % KEY_BLOCK;
            const int64_t end = CAUSAL ? std::min(KEYS, first + count) : KEYS;
            int64_t key = 0;
            for (; key + KEY_BLOCK <= KEYS && key < end; key += KEY_BLOCK)
                see_some<KEY_BLOCK>(k + key * K::ROW, v + key * V::ROW, mask + key * M::ELEMENT, key);
            if constexpr (REST > 0)
                if (key < end) see_some<REST>(k + key * K::ROW, v + key * V::ROW, mask + key * M::ELEMENT, key);
        }

        template <int64_t COUNT>
        void see_some(const T* k, const T* v, const T* mask, int64_t at) {
            alignas(64) T scores[COUNT * BLOCK], factor[BLOCK];
            Product<T, COUNT, WIDTH, BLOCK, Layout<K::ROW, K::ELEMENT>, Layout<BLOCK, 1>,
                    Layout<BLOCK, 1>>::alone(k, query, scores, false);
            if constexpr (MASKED)
                for (int64_t key = 0; key < COUNT; ++key)
                    for (int64_t r = 0; r < count; ++r)
                        scores[key * BLOCK + r] += mask[(first + r) * M::ROW + key * M::ELEMENT];
            if (CAUSAL && at + COUNT - 1 > first)
                for (int64_t key = 0; key < COUNT; ++key)
                    for (int64_t r = 0; r < BLOCK; ++r)
                        if (at + key > first + r) scores[key * BLOCK + r] = LOWEST;
            weigh<COUNT>(scores, factor);
            for (int64_t r = 0; r < BLOCK; ++r)
                for (int64_t w = 0; w < VALUES; ++w) sums[r * VALUES + w] *= factor[r];
            Product<T, BLOCK, COUNT, VALUES, Layout<1, BLOCK>, Layout<V::ROW, V::ELEMENT>,
                    Layout<VALUES, 1>>::alone(scores, v, sums, true);
        }

        // Makes weights of scores, and says what sums with an earlier maximum are to be multiplied by.
        template <int64_t COUNT>
        void weigh(T* scores, T* factor) {
            alignas(64) T top[BLOCK], sum[BLOCK] = {};
            std::copy_n(highest, BLOCK, top);
            for (int64_t key = 0; key < COUNT; ++key)
                for (int64_t r = 0; r < BLOCK; ++r) {
                    const T score = scores[key * BLOCK + r];
                    top[r] = score > top[r] || score != score ? score : top[r];
                }
            #pragma omp simd
            for (int64_t r = 0; r < BLOCK; ++r) {
                const T last = highest[r];
                highest[r] = top[r];
                top[r] = top[r] == LOWEST ? T(0) : top[r];  // nothing seen yet
                factor[r] = branchless::exp(last - top[r]);
            }
            for (int64_t key = 0; key < COUNT; ++key)
                #pragma omp simd
                for (int64_t r = 0; r < BLOCK; ++r) {
                    const T weight = branchless::exp(scores[key * BLOCK + r] - top[r]);
                    scores[key * BLOCK + r] = weight;
                    sum[r] += weight;
                }
            for (int64_t r = 0; r < BLOCK; ++r) total[r] = total[r] * factor[r] + sum[r];
        }

        // A row that sees nothing is zero.
        void write(T* y) const {
            for (int64_t r = 0; r < count; ++r) {
                const T share = total[r] == T(0) ? T(0) : 1 / total[r];
                for (int64_t w = 0; w < VALUES; ++w)
                    y[(first + r) * Y::ROW + w * Y::ELEMENT] = sums[r * VALUES + w] * share;
            }
        }
    };
};
