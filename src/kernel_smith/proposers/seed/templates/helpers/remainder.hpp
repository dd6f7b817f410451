template <typename A, typename B>
inline std::common_type_t<A, B> mod(A a, B b) {
    if constexpr (std::is_floating_point_v<A>) return std::fmod(a, b);
    else return a % b;
}
