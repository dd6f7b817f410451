template <typename T>
struct IndexValue {
    int64_t index = 0;
    T value{};
    IndexValue() = default;
    IndexValue(int64_t at, T what) : index(at), value(what) {}
};
// The first of equal values wins, and a NaN wins over numbers.
template <typename T>
inline IndexValue<T>& argmax_combine(IndexValue<T>& best, T value, int64_t index) {
    if (value < best.value) return best;  // nearly always
    const bool best_nan = best.value != best.value, nan = value != value;
    const bool equal = best.value == value || (best_nan && nan);
    const bool better = !best_nan && (nan || value > best.value);
    if (equal ? index < best.index : better) best = {index, value};
    return best;
}
template <typename T>
inline IndexValue<T>& argmin_combine(IndexValue<T>& best, T value, int64_t index) {
    if (value > best.value) return best;  // nearly always
    const bool best_nan = best.value != best.value, nan = value != value;
    const bool equal = best.value == value || (best_nan && nan);
    const bool better = !best_nan && (nan || value < best.value);
    if (equal ? index < best.index : better) best = {index, value};
    return best;
}
template <typename T>
inline IndexValue<T>& argmax_combine(IndexValue<T>& best, const IndexValue<T>& next) {
    return argmax_combine(best, next.value, next.index);
}
template <typename T>
inline IndexValue<T>& argmin_combine(IndexValue<T>& best, const IndexValue<T>& next) {
    return argmin_combine(best, next.value, next.index);
}
