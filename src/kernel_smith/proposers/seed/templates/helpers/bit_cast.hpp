namespace c10 {
template <typename To, typename From>
inline To bit_cast(const From& from) {
    To to;
    static_assert(sizeof to == sizeof from, "sizes differ");
    std::memcpy(&to, &from, sizeof to);
    return to;
}
}
