// A transposed convolution: a product spreads the pixels of x over all taps, and what meets in a
// pixel of the result is added up. Where there are steps, patches of x would hold little but zeros.
template <typename T, int64_t IMAGES, int64_t GROUPS, int64_t IN, int64_t OUT, typename Size,
          typename Result, typename Taps, typename Step, typename Padding, typename Dilation,
          typename X, typename Weight, typename Y>
struct Spreading {
    static constexpr int64_t TAPS = Taps::D * Taps::H * Taps::W, PIXELS = Size::D * Size::H * Size::W;
    static constexpr int64_t SPREAD = Step::W, LENGTH = (Result::W + SPREAD - 1) / SPREAD;

    // Enough channels for a product, and few enough for its result to stay in the cache.
    static constexpr int64_t channels_at_once() {
        constexpr int64_t ENOUGH_ROWS = 64;
        int64_t channels = 1;
        while (channels < OUT && (OUT % channels != 0 || channels * TAPS < ENOUGH_ROWS)) ++channels;
        return channels;
    }
    static constexpr int64_t SOME = channels_at_once(), ROWS = SOME * TAPS;
    using Parts = Product<T, ROWS, IN, PIXELS, Layout<IN, 1>, Layout<X::CHANNEL, X::W>, Layout<PIXELS, 1>>;

    static void convolve(const T* x, const T* weight, T* y, const T* bias = nullptr) {
        const std::unique_ptr<T[]> rows(new T[GROUPS * OUT * TAPS * IN]), parts(new T[ROWS * PIXELS]);
        #pragma omp parallel for
        for (int64_t o = 0; o < GROUPS * OUT; ++o) arrange(weight, o, rows.get() + o * TAPS * IN);
        for (int64_t image = 0; image < IMAGES; ++image)
            for (int64_t o = 0; o < GROUPS * OUT; o += SOME) {
                const T* from = x + image * X::IMAGE + o / OUT * IN * X::CHANNEL;
                Parts::multiply(rows.get() + o * TAPS * IN, from, parts.get());
                gather(parts.get(), bias ? bias + o : nullptr, y + image * Y::IMAGE + o * Y::CHANNEL);
            }
    }

  private:
    // Weights are there by channel of x, channel of the result and tap.
    static void arrange(const T* weight, int64_t channel, T* arranged) {
        const T* from = weight + channel / OUT * IN * Weight::IMAGE + channel % OUT * Weight::CHANNEL;
        for (int64_t tap = 0; tap < TAPS; ++tap)
            for (int64_t i = 0; i < IN; ++i)
                arranged[tap * IN + i] =
                    from[i * Weight::IMAGE + tap / (Taps::H * Taps::W) * Weight::D +
                         tap / Taps::W % Taps::H * Weight::H + tap % Taps::W * Weight::W];
    }

    static void gather(const T* parts, const T* bias, T* y) {
        #pragma omp parallel
        {
            const std::unique_ptr<T[]> sums(new T[SPREAD * LENGTH]);
            #pragma omp for collapse(3)
            for (int64_t o = 0; o < SOME; ++o)
                for (int64_t d = 0; d < Result::D; ++d)
                    for (int64_t h = 0; h < Result::H; ++h) {
                        std::fill_n(sums.get(), SPREAD * LENGTH, bias ? bias[o] : T(0));
                        add_taps(parts + o * TAPS * PIXELS, d, h, sums.get());
                        T* line = y + o * Y::CHANNEL + d * Y::D + h * Y::H;
                        for (int64_t w = 0; w < Result::W; ++w)
                            line[w * Y::W] = sums[w % SPREAD * LENGTH + w / SPREAD];
                    }
        }
    }

    // Of a line of the result, pixels that lie SPREAD apart are added up side by side.
    static void add_taps(const T* parts, int64_t d, int64_t h, T* sums) {
        for (int64_t tap_d = 0; tap_d < Taps::D; ++tap_d) {
            const int64_t in_d = tapped<Size::D, Step::D, Padding::D, Dilation::D, true>(d, tap_d);
            for (int64_t tap_h = 0; in_d >= 0 && tap_h < Taps::H; ++tap_h) {
                const int64_t in_h = tapped<Size::H, Step::H, Padding::H, Dilation::H, true>(h, tap_h);
                if (in_h < 0) continue;
                const int64_t tap = (tap_d * Taps::H + tap_h) * Taps::W;
                add_line(parts + tap * PIXELS + (in_d * Size::H + in_h) * Size::W, sums);
            }
        }
    }

    static void add_line(const T* line, T* sums) {
        #pragma GCC unroll 8
        for (int64_t tap = 0; tap < Taps::W; ++tap) {
            const int64_t first = tap * Dilation::W - Padding::W;
            const int64_t remainder = (first % SPREAD + SPREAD) % SPREAD, shift = (first - remainder) / SPREAD;
            const int64_t from = std::max<int64_t>(0, -shift);
            const int64_t to = std::min(Size::W, (Result::W - remainder + SPREAD - 1) / SPREAD - shift);
            T* place = sums + remainder * LENGTH + shift;
            for (int64_t w = from; w < to; ++w) place[w] += line[tap * PIXELS + w];
        }
    }
};
