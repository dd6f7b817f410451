// Loads and stores with cache hints, which mean nothing here.
#pragma once

#define KS_LOAD(name)        \
  template <class T>         \
  T name(const T* address) { \
    return *address;         \
  }
KS_LOAD(__ldg)
KS_LOAD(__ldcg)
KS_LOAD(__ldca)
KS_LOAD(__ldcs)
KS_LOAD(__ldlu)
KS_LOAD(__ldcv)
#undef KS_LOAD

#define KS_STORE(name)                                                \
  template <class T>                                                  \
  void name(T* address, typename ks_simt::Same<T>::type value) {      \
    *address = value;                                                 \
  }
namespace ks_simt {
// Keeps a parameter out of deduction, so that it converts to what the pointer points to.
template <class T>
struct Same {
  using type = T;
};
}  // namespace ks_simt
KS_STORE(__stwb)
KS_STORE(__stcg)
KS_STORE(__stcs)
KS_STORE(__stwt)
#if !defined(__clang__)
template <class T>
T __builtin_nontemporal_load(const T* address) {
  return *address;
}
template <class T>
void __builtin_nontemporal_store(typename ks_simt::Same<T>::type value, T* address) {
  *address = value;
}
#endif
#undef KS_STORE
