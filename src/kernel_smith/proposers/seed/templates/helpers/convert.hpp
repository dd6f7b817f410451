namespace c10 {
template <typename To, typename From>
inline To convert(From value) { return static_cast<To>(value); }
}
