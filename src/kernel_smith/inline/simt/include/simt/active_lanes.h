// Wave operations without a mask, as MACA and HIP have them: all active lanes take part.
#pragma once

#define KS_SHUFFLE(name, second, function)                                                      \
  template <class T>                                                                            \
  T name(T value, second argument, int width = KS_WAVE, int line = __builtin_LINE()) {          \
    return ks_simt::function(#name, line, 0, value, argument, width);                           \
  }
KS_SHUFFLE(__shfl, int, shuffle_index)
KS_SHUFFLE(__shfl_up, unsigned, shuffle_up)
KS_SHUFFLE(__shfl_down, unsigned, shuffle_down)
KS_SHUFFLE(__shfl_xor, int, shuffle_xor)
#undef KS_SHUFFLE

inline ks_simt_mask __ballot(int vote, int line = __builtin_LINE()) {
  return static_cast<ks_simt_mask>(ks_simt::ballot("__ballot", line, 0, vote != 0).votes);
}
inline int __any(int vote, int line = __builtin_LINE()) {
  return ks_simt::ballot("__any", line, 0, vote != 0).votes != 0;
}
inline int __all(int vote, int line = __builtin_LINE()) {
  ks_simt::Ballot result = ks_simt::ballot("__all", line, 0, vote != 0);
  return result.votes == result.lanes;
}
inline unsigned __lane_id() { return ks_simt::lane_of_thread(); }
