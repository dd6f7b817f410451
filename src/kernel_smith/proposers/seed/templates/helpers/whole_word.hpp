// A condition whose origin g++ cannot see: loops become no vectors where it is known to be a byte.
inline int32_t whole_word(bool truth) {
    int32_t word = truth;
    asm("" : "+r"(word));
    return word;
}
