// Atomics. No other thread runs meanwhile, so they are plain operations; but a loop around one may
// wait for another thread, which must get its turn.
#pragma once

namespace ks_simt {

template <class T, class Update>
T exchange(T* address, Update update) {
  spin();
  T old = *address;
  *address = T(update(old));
  return old;
}

}  // namespace ks_simt

#define KS_ATOMIC(name, expression)                                        \
  template <class T>                                                       \
  T name(T* address, typename ks_simt::Same<T>::type value) {              \
    return ks_simt::exchange(address, [&](T old) { return expression; });  \
  }                                                                        \
  template <class T>                                                       \
  T name##_block(T* address, typename ks_simt::Same<T>::type value) {      \
    return name(address, value);                                           \
  }                                                                        \
  template <class T>                                                       \
  T name##_system(T* address, typename ks_simt::Same<T>::type value) {     \
    return name(address, value);                                           \
  }
KS_ATOMIC(atomicAdd, old + value)
KS_ATOMIC(atomicSub, old - value)
KS_ATOMIC(atomicExch, value)
KS_ATOMIC(atomicMin, value < old ? value : old)
KS_ATOMIC(atomicMax, old < value ? value : old)
KS_ATOMIC(atomicAnd, old& value)
KS_ATOMIC(atomicOr, old | value)
KS_ATOMIC(atomicXor, old ^ value)
KS_ATOMIC(atomicInc, old >= value ? T(0) : T(old + 1))
KS_ATOMIC(atomicDec, (old == 0 || old > value) ? value : T(old - 1))
KS_ATOMIC(unsafeAtomicAdd, old + value)
#undef KS_ATOMIC

template <class T>
T atomicCAS(T* address, typename ks_simt::Same<T>::type expected,
            typename ks_simt::Same<T>::type value) {
  return ks_simt::exchange(address, [&](T old) { return old == expected ? value : old; });
}
template <class T>
T atomicCAS_block(T* address, typename ks_simt::Same<T>::type expected,
                  typename ks_simt::Same<T>::type value) {
  return atomicCAS(address, expected, value);
}
template <class T>
T atomicCAS_system(T* address, typename ks_simt::Same<T>::type expected,
                   typename ks_simt::Same<T>::type value) {
  return atomicCAS(address, expected, value);
}
