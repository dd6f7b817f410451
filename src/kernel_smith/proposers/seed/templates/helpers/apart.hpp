// A place whose origin g++ cannot see: it would gather what neighbouring iterations load.
inline int64_t apart(int64_t place) {
    asm("" : "+r"(place));
    return place;
}
