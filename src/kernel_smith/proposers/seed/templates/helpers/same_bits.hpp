// What is computed in this namespace is right to about one unit in the last place, and has no
// branches: loops over it become vector code.
namespace branchless {
template <typename To, typename From>
inline To same_bits(From from) {
    To to;
    std::memcpy(&to, &from, sizeof to);
    return to;
}
}
