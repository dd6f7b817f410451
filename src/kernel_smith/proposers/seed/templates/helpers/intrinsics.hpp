#if defined(__F16C__)
#include <immintrin.h>
#endif
