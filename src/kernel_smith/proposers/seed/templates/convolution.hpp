// A convolution as a product: weights, a row for each channel of the result, times patches of x.
// It has no steps if it is TRANSPOSED.

// Column j holds what the result's pixel j depends on, in rows by tap and channel.
template <int64_t CHANNELS, typename Size, typename Result, typename Taps, typename Step,
          typename Padding, typename Dilation, bool TRANSPOSED, typename X>
struct Patches {
    static constexpr int64_t DOWN = 0, RIGHT = 0;

    template <int64_t WIDTH, int64_t TILE, typename T>
    static void pack(const T* x, int64_t column, int64_t top, int64_t depth, T* packed) {
        for (int64_t j = 0, run; j < WIDTH; j += run) {
            const int64_t pixel = column + j, first = pixel % Result::W;
            run = std::min(WIDTH - j, Result::W - first);
            for (int64_t row = 0, rows; row < depth; row += rows) {
                const int64_t tap = (top + row) / CHANNELS, channel = (top + row) % CHANNELS;
                rows = std::min(CHANNELS - channel, depth - row);
                const int64_t in_d = tapped<Size::D, Step::D, Padding::D, Dilation::D, TRANSPOSED>(
                    pixel / (Result::H * Result::W), tap / (Taps::H * Taps::W));
                const int64_t in_h = tapped<Size::H, Step::H, Padding::H, Dilation::H, TRANSPOSED>(
                    pixel / Result::W % Result::H, tap / Taps::W % Taps::H);
                const T* from = in_d < 0 || in_h < 0 ? nullptr : x + channel * X::CHANNEL + in_d * X::D + in_h * X::H;
                lines<TILE>(from, rows, first, run, tap % Taps::W, packed + row * TILE + j);
            }
        }
    }

  private:
    // A line of the same tap from each of some channels; nothing but zeros without x.
    template <int64_t TILE, typename T>
    static void lines(const T* x, int64_t rows, int64_t first, int64_t run, int64_t tap, T* packed) {
        const int64_t away = tap * Dilation::W - Padding::W, shift = TRANSPOSED ? -away : away;
        const int64_t last = Size::W - 1 - shift;
        const int64_t begin = shift < 0 ? (-shift + Step::W - 1) / Step::W - first : 0;
        const int64_t end = !x || last < 0 ? 0 : last / Step::W + 1 - first;
        const int64_t from = std::clamp<int64_t>(begin, 0, run), to = std::clamp(end, from, run);
        for (int64_t row = 0; row < rows; ++row, packed += TILE) {
            std::fill_n(packed, from, T(0));
            const T* line = x + row * X::CHANNEL;
            for (int64_t i = from; i < to; ++i) packed[i] = line[((first + i) * Step::W + shift) * X::W];
            std::fill_n(packed + to, run - to, T(0));
        }
    }
};

// Each of GROUPS makes OUT channels of the result from IN channels of x.
template <typename T, int64_t IMAGES, int64_t GROUPS, int64_t IN, int64_t OUT, typename Size,
          typename Result, typename Taps, typename Step, typename Padding, typename Dilation,
          bool TRANSPOSED, typename X, typename Weight, typename Y>
struct Convolution {
    static constexpr int64_t TAPS = Taps::D * Taps::H * Taps::W, INNER = TAPS * IN;
    static constexpr int64_t PIXELS = Result::D * Result::H * Result::W;
    using Columns = Patches<IN, Size, Result, Taps, Step, Padding, Dilation, TRANSPOSED, X>;
    using Each = Product<T, OUT, INNER, PIXELS, Layout<INNER, 1>, Columns, Layout<Y::CHANNEL, Y::W>,
                         Layout<1, 0>>;

    static void convolve(const T* x, const T* weight, T* y, const T* bias = nullptr) {
        const std::unique_ptr<T[]> rows(new T[GROUPS * OUT * INNER]);
        #pragma omp parallel for
        for (int64_t row = 0; row < GROUPS * OUT; ++row) arrange(weight, row, rows.get() + row * INNER);
        for (int64_t g = 0; g < GROUPS; ++g)
            Each::multiply(rows.get() + g * OUT * INNER, x + g * IN * X::CHANNEL, y + g * OUT * Y::CHANNEL,
                           bias ? bias + g * OUT : nullptr, IMAGES, 0, X::IMAGE, Y::IMAGE);
    }

  private:
    // Weights are there by channel of the result and of x; the other way round if TRANSPOSED.
    static void arrange(const T* weight, int64_t row, T* arranged) {
        const int64_t first = row / OUT * IN;
        for (int64_t tap = 0; tap < TAPS; ++tap)
            for (int64_t i = 0; i < IN; ++i) {
                const int64_t channel = TRANSPOSED ? (first + i) * Weight::IMAGE + row % OUT * Weight::CHANNEL
                                                   : row * Weight::IMAGE + i * Weight::CHANNEL;
                arranged[tap * IN + i] =
                    weight[channel + tap / (Taps::H * Taps::W) * Weight::D +
                           tap / Taps::W % Taps::H * Weight::H + tap % Taps::W * Weight::W];
            }
    }
};
