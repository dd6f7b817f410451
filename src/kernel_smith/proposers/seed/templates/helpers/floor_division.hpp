namespace c10 {
template <typename A, typename B>
inline std::common_type_t<A, B> div_floor_integer(A a, B b) {
    const auto quotient = a / b;
    return quotient - (a % b != 0 && (a < 0) != (b < 0));
}
}
template <typename A, typename B>
inline std::common_type_t<A, B> floor_divide_integral(A a, B b) {
    return c10::div_floor_integer(a, b);
}
