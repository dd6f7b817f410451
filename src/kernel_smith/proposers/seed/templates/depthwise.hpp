// A convolution in groups of so few channels that they are no matrices. Lines of x go through a buffer
// that holds their padding, too, so that vectors of the result are sums over all taps, without edges.
template <typename T, int64_t IMAGES, int64_t GROUPS, int64_t IN, int64_t OUT, typename Size,
          typename Result, typename Taps, typename Step, typename Padding, typename Dilation,
          typename X, typename Weight, typename Y>
struct Depthwise {
    static void convolve(const T* x, const T* weight, T* y, const T* bias = nullptr) {
        #pragma omp parallel for collapse(3)
        for (int64_t image = 0; image < IMAGES; ++image)
            for (int64_t group = 0; group < GROUPS; ++group)
                for (int64_t d = 0; d < Result::D; ++d)
                    for (int64_t h = 0; h < Result::H; h += BAND)
                        for (int64_t w = 0; w < Result::W; w += PIECE)
                            band(x + image * X::IMAGE + group * IN * X::CHANNEL, weight + group * OUT * Weight::IMAGE,
                                 y + image * Y::IMAGE + group * OUT * Y::CHANNEL,
                                 bias ? bias + group * OUT : nullptr, d, h, w);
    }

  private:
    static constexpr int64_t AT_ONCE = 8 /* lines, in registers */, BLOCK = 32 /* lines, in a buffer */;
    static constexpr int64_t STRIP = 128;  // elements of a line
    static constexpr int64_t lanes() {
        int64_t count = VECTOR_BYTES / sizeof(T);
        while (count / 2 >= Result::W) count /= 2;
        return count;
    }
    static constexpr int64_t up(int64_t size, int64_t unit) { return (size + unit - 1) / unit * unit; }
    static constexpr int64_t LANES = lanes(), PIECE = up(std::min(Result::W, STRIP), LANES);
    // Elements that one vector takes together are neighbours: those STEP apart, in STEP phases.
    static constexpr int64_t PHASE = up(PIECE + (Taps::W - 1) * Dilation::W / Step::W, LANES);
    static constexpr int64_t LINE = PHASE * Step::W;
    static constexpr int64_t lines_for(int64_t results) {
        return (results - 1) * Step::H + (Taps::H - 1) * Dilation::H + 1;
    }
    static constexpr int64_t lines_at_once() {
        int64_t count = std::min(Result::H, BLOCK);
        while (count > 1 && IN * Taps::D * lines_for(count) * LINE * sizeof(T) > 65536) count /= 2;
        return count;
    }
    static constexpr int64_t BAND = lines_at_once(), LINES = lines_for(BAND);  // that share a buffer
    typedef T Vector __attribute__((vector_size(LANES * sizeof(T)), aligned(sizeof(T)), may_alias));

    static void band(const T* x, const T* weight, T* y, const T* bias, int64_t d, int64_t h, int64_t w) {
        alignas(64) T lines[IN * Taps::D * LINES * LINE];
        const int64_t count = std::min(BAND, Result::H - h);
        const int64_t needed = lines_for(count);
        for (int64_t i = 0; i < IN * Taps::D; ++i)
            for (int64_t line = 0; line < needed; ++line) {
                const int64_t in_d = d * Step::D - Padding::D + i % Taps::D * Dilation::D;
                const int64_t in_h = h * Step::H - Padding::H + line;
                const bool inside = in_d >= 0 && in_d < Size::D && in_h >= 0 && in_h < Size::H;
                const T* from = inside ? x + i / Taps::D * X::CHANNEL + in_d * X::D + in_h * X::H : nullptr;
                fill(from, w * Step::W - Padding::W, lines + (i * LINES + line) * LINE);
            }
        const int64_t wide = std::min(PIECE, Result::W - w);
        for (int64_t out = 0; out < OUT; ++out) {
            T* place = y + out * Y::CHANNEL + d * Y::D + h * Y::H + w * Y::W;
            const T *own = weight + out * Weight::IMAGE, start = bias ? bias[out] : T(0);
            int64_t line = 0;
            for (; line + AT_ONCE <= count; line += AT_ONCE)
                some_lines<AT_ONCE>(lines + line * Step::H * LINE, own, place + line * Y::H, start, wide);
            if constexpr (AT_ONCE > 4)
                for (; line + 4 <= count; line += 4)
                    some_lines<4>(lines + line * Step::H * LINE, own, place + line * Y::H, start, wide);
            for (const int64_t end = line + (count - line) % 4; line < end; ++line)  // fewer than 4
                some_lines<1>(lines + line * Step::H * LINE, own, place + line * Y::H, start, wide);
        }
    }

    // A line of x from the element `first` on, which may lie before its begin; none is all padding.
    static void fill(const T* x, int64_t first, T* line) {
        for (int64_t phase = 0; phase < Step::W; ++phase, line += PHASE) {
            const int64_t at = first + phase;
            const int64_t begin = at < 0 ? (-at + Step::W - 1) / Step::W : 0;
            const int64_t end = at < Size::W ? (Size::W - 1 - at) / Step::W + 1 : 0;
            const int64_t from = x ? std::min(begin, PHASE) : PHASE, to = std::clamp(end, from, PHASE);
            std::fill_n(line, from, T(0));
            for (int64_t i = from; i < to; ++i) line[i] = x[(at + i * Step::W) * X::W];
            std::fill_n(line + to, PHASE - to, T(0));
        }
    }

    template <int64_t COUNT>
    static void some_lines(const T* lines, const T* weight, T* y, T bias, int64_t wide) {
        for (int64_t first = 0; first < wide; first += LANES) {
            Vector sums[COUNT];
            #pragma GCC unroll 8
            for (int64_t line = 0; line < COUNT; ++line) sums[line] = bias + Vector{};
            for (int64_t i = 0; i < IN * Taps::D; ++i)
                for (int64_t h = 0; h < Taps::H; ++h)
                    #pragma GCC unroll 16
                    for (int64_t w = 0; w < Taps::W; ++w) {
                        const int64_t right = w * Dilation::W;
                        const T* from = lines + (i * LINES + h * Dilation::H) * LINE +
                                        right % Step::W * PHASE + right / Step::W + first;
                        const T tap = weight[i / Taps::D * Weight::CHANNEL + i % Taps::D * Weight::D +
                                             h * Weight::H + w * Weight::W];
                        #pragma GCC unroll 8
                        for (int64_t line = 0; line < COUNT; ++line)
                            sums[line] += tap * *reinterpret_cast<const Vector*>(from + line * Step::H * LINE);
                    }
            #pragma GCC unroll 8
            for (int64_t line = 0; line < COUNT; ++line) write(sums[line], y + line * Y::H + first * Y::W, wide - first);
        }
    }

    static void write(Vector sums, T* y, int64_t count) {
        if (Y::W == 1 && count >= LANES) {
            *reinterpret_cast<Vector*>(y) = sums;
        } else {
            alignas(64) T found[LANES];
            std::memcpy(found, &sums, sizeof found);
            for (int64_t i = 0; i < std::min(LANES, count); ++i) y[i * Y::W] = found[i];
        }
    }
};
