template <typename T>
inline void atomic_add(T* address, T value) {
    #pragma omp atomic
    *address += value;
}
