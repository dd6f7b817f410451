// Wave operations: shuffles, votes, matches and reductions over the lanes of one wave.
#pragma once

#if KS_WAVE == 32
typedef unsigned ks_simt_mask;
#else
typedef unsigned long long ks_simt_mask;
#endif

namespace ks_simt {

constexpr ks_simt_mask all_lanes = ~ks_simt_mask(0);

inline unsigned lane_of_thread() { return machine.current->lane; }

// Wait until all lanes of the mask are here, or all that are active if the mask is 0.
inline void collect(Request& request) {
  Thread& thread = *machine.current;
  Wave& wave = *thread.wave;
  if (request.mask != 0 && (request.mask >> thread.lane & 1) == 0) {
    print_where();
    fprintf(stderr, "lane %u calls %s of line %d with the mask 0x%llx, which does not name it\n",
            thread.lane, request.name, request.line, static_cast<unsigned long long>(request.mask));
    fail();
  }
  thread.fiber = machine.running;
  thread.request = &request;
  wave.waiting |= uint64_t(1) << thread.lane;
  settle_wave(wave, request);
  while (!request.done) suspend();
}

// Only operations without a mask may leave it to the machine who takes part.
inline uint64_t named(ks_simt_mask mask) {
  if (mask != 0) return mask;
  print_where();
  fprintf(stderr, "a wave operation with a mask that names no lane\n");
  fail();
}

template <class T>
void combine_shuffle(const Group& group) {
  group.each([&](unsigned, Request& request) {
    // What a lane that takes no part would give is undefined: no number.
    if ((group.lanes >> request.source & 1) == 0)
      memset(request.result, 0xff, sizeof(T));
    else
      memcpy(request.result, group.wave.lanes[request.source].request->value, sizeof(T));
  });
}

template <class T>
T shuffle(const char* name, int line, uint64_t mask, T value, unsigned source) {
  static_assert(std::is_trivially_copyable<T>::value, "only plain values can be shuffled");
  T result = value;
  Request request{name, combine_shuffle<T>, mask, line, &value, &result, source, false};
  collect(request);
  return result;
}

inline unsigned segment(int width) { return lane_of_thread() & ~(unsigned(width) - 1); }

template <class T>
T shuffle_index(const char* name, int line, uint64_t mask, T value, int source, int width) {
  unsigned inside = unsigned(source) & unsigned(width - 1);
  return shuffle(name, line, mask, value, segment(width) + inside);
}

template <class T>
T shuffle_up(const char* name, int line, uint64_t mask, T value, unsigned delta, int width) {
  unsigned lane = lane_of_thread();
  bool inside = delta <= lane - segment(width);
  return shuffle(name, line, mask, value, inside ? lane - delta : lane);
}

template <class T>
T shuffle_down(const char* name, int line, uint64_t mask, T value, unsigned delta, int width) {
  unsigned lane = lane_of_thread();
  bool inside = delta < segment(width) + unsigned(width) - lane;
  return shuffle(name, line, mask, value, inside ? lane + delta : lane);
}

template <class T>
T shuffle_xor(const char* name, int line, uint64_t mask, T value, int bits, int width) {
  unsigned lane = lane_of_thread(), source = lane ^ unsigned(bits);
  // An earlier segment may be read, a later one may not.
  bool inside = source < segment(width) + unsigned(width);
  return shuffle(name, line, mask, value, inside ? source : lane);
}

inline void combine_ballot(const Group& group) {
  uint64_t votes = 0;
  group.each([&](unsigned lane, Request& request) {
    votes |= uint64_t(*static_cast<const bool*>(request.value)) << lane;
  });
  uint64_t answer[2] = {votes, group.lanes};
  group.each([&](unsigned, Request& request) { memcpy(request.result, answer, sizeof answer); });
}

struct Ballot {
  uint64_t votes, lanes;
};

inline Ballot ballot(const char* name, int line, uint64_t mask, bool vote) {
  Ballot result{};
  Request request{name, combine_ballot, mask, line, &vote, &result, 0, false};
  collect(request);
  return result;
}

template <class T, class Operation>
void combine_reduce(const Group& group) {
  const T* first = nullptr;
  T total{};
  group.each([&](unsigned, Request& request) {
    const T* value = static_cast<const T*>(request.value);
    total = first == nullptr ? *value : Operation()(total, *value);
    first = value;
  });
  group.each([&](unsigned, Request& request) { *static_cast<T*>(request.result) = total; });
}

template <class Operation, class T>
T reduce(const char* name, int line, uint64_t mask, T value) {
  T result = value;
  Request request{name, combine_reduce<T, Operation>, mask, line, &value, &result, 0, false};
  collect(request);
  return result;
}

template <class T>
void combine_match(const Group& group) {
  group.each([&](unsigned, Request& request) {
    uint64_t same = 0;
    group.each([&](unsigned lane, Request& other) {
      bool equal = memcmp(request.value, other.value, sizeof(T)) == 0;
      same |= uint64_t(equal) << lane;
    });
    uint64_t answer[2] = {same, group.lanes};
    memcpy(request.result, answer, sizeof answer);
  });
}

template <class T>
Ballot match(const char* name, int line, uint64_t mask, T value) {
  Ballot result{};
  Request request{name, combine_match<T>, mask, line, &value, &result, 0, false};
  collect(request);
  return result;
}

struct Add { template <class T> T operator()(T a, T b) const { return T(a + b); } };
struct Least { template <class T> T operator()(T a, T b) const { return b < a ? b : a; } };
struct Greatest { template <class T> T operator()(T a, T b) const { return a < b ? b : a; } };
struct BitAnd { template <class T> T operator()(T a, T b) const { return T(a & b); } };
struct BitOr { template <class T> T operator()(T a, T b) const { return T(a | b); } };
struct BitXor { template <class T> T operator()(T a, T b) const { return T(a ^ b); } };

}  // namespace ks_simt

inline void __syncwarp(ks_simt_mask mask = ks_simt::all_lanes, int line = __builtin_LINE()) {
  ks_simt::ballot("__syncwarp", line, ks_simt::named(mask), true);
}
inline ks_simt_mask __activemask(int line = __builtin_LINE()) {
  return static_cast<ks_simt_mask>(ks_simt::ballot("__activemask", line, 0, true).votes);
}

#define KS_SHUFFLE(name, second, function)                                                       \
  template <class T>                                                                             \
  T name##_sync(ks_simt_mask mask, T value, second argument, int width = KS_WAVE,                \
                int line = __builtin_LINE()) {                                                   \
    return ks_simt::function(#name "_sync", line, ks_simt::named(mask), value, argument, width);   \
  }
KS_SHUFFLE(__shfl, int, shuffle_index)
KS_SHUFFLE(__shfl_up, unsigned, shuffle_up)
KS_SHUFFLE(__shfl_down, unsigned, shuffle_down)
KS_SHUFFLE(__shfl_xor, int, shuffle_xor)
#undef KS_SHUFFLE

inline ks_simt_mask __ballot_sync(ks_simt_mask mask, int vote, int line = __builtin_LINE()) {
  ks_simt::Ballot result = ks_simt::ballot("__ballot_sync", line, ks_simt::named(mask), vote != 0);
  return static_cast<ks_simt_mask>(result.votes);
}
inline int __any_sync(ks_simt_mask mask, int vote, int line = __builtin_LINE()) {
  return ks_simt::ballot("__any_sync", line, ks_simt::named(mask), vote != 0).votes != 0;
}
inline int __all_sync(ks_simt_mask mask, int vote, int line = __builtin_LINE()) {
  ks_simt::Ballot result = ks_simt::ballot("__all_sync", line, ks_simt::named(mask), vote != 0);
  return result.votes == result.lanes;
}
template <class T>
ks_simt_mask __match_any_sync(ks_simt_mask mask, T value, int line = __builtin_LINE()) {
  ks_simt::Ballot result = ks_simt::match("__match_any_sync", line, ks_simt::named(mask), value);
  return static_cast<ks_simt_mask>(result.votes);
}
template <class T>
ks_simt_mask __match_all_sync(ks_simt_mask mask, T value, int* same, int line = __builtin_LINE()) {
  ks_simt::Ballot result = ks_simt::match("__match_all_sync", line, ks_simt::named(mask), value);
  *same = result.votes == result.lanes;
  return static_cast<ks_simt_mask>(*same ? result.votes : 0);
}

#define KS_REDUCE(name, operation)                                                \
  template <class T>                                                              \
  T name(ks_simt_mask mask, T value, int line = __builtin_LINE()) {               \
    return ks_simt::reduce<ks_simt::operation>(#name, line, ks_simt::named(mask), value);         \
  }
KS_REDUCE(__reduce_add_sync, Add)
KS_REDUCE(__reduce_min_sync, Least)
KS_REDUCE(__reduce_max_sync, Greatest)
KS_REDUCE(__reduce_and_sync, BitAnd)
KS_REDUCE(__reduce_or_sync, BitOr)
KS_REDUCE(__reduce_xor_sync, BitXor)
#undef KS_REDUCE
