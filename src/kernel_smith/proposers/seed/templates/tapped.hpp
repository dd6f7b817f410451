// Where a tap finds its element along one axis; -1 where there is none.
template <int64_t SIZE, int64_t STEP, int64_t PADDING, int64_t DILATION, bool TRANSPOSED>
inline int64_t tapped(int64_t result, int64_t tap) {
    const int64_t at = TRANSPOSED ? result + PADDING - tap * DILATION
                                  : result * STEP - PADDING + tap * DILATION;
    if (TRANSPOSED && at % STEP != 0) return -1;
    const int64_t found = TRANSPOSED ? at / STEP : at;
    return at >= 0 && found < SIZE ? found : -1;
}
