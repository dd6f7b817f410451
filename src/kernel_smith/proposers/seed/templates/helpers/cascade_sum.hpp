// A sum in chunks, whose sums are added up in turn: rounding errors stay small.
template <typename T, uint64_t chunk>
struct CascadeSumHelper {
    T inner = 0, outer = 0;
    uint64_t count = 0;
    CascadeSumHelper() = default;
    explicit CascadeSumHelper(uint64_t) {}
};
template <typename T, uint64_t chunk>
inline T cascade_sum_combine(T value, CascadeSumHelper<T, chunk>* sum) {
    sum->inner += value;
    if (++sum->count == (chunk > 256 ? 256 : chunk)) {
        sum->outer += sum->inner;
        sum->inner = 0;
        sum->count = 0;
    }
    return sum->inner;
}
template <typename T, uint64_t chunk>
inline T cascade_sum_final(CascadeSumHelper<T, chunk>* sum) { return sum->outer + sum->inner; }
