// Keys: unsigned integers of the elements' size that order as the elements do: NaN last and all NaN equal, both zeros equal.
// T: memory type.
#pragma once
#include "common/reduce.cuh"

typedef unsigned short ts_u16;
template <int BYTES> struct ts_unsigned { typedef ts_u64 type; };
template <> struct ts_unsigned<1> { typedef ts_u8 type; };
template <> struct ts_unsigned<2> { typedef ts_u16 type; };
template <> struct ts_unsigned<4> { typedef ts_u32 type; };
typedef typename ts_unsigned<(int)sizeof(T)>::type Key;

static const int KEY_BITS = 8 * (int)sizeof(T);
static const Key MAX_KEY = (Key)~(Key)0, SIGN = (Key)((Key)1 << (KEY_BITS - 1));
static const bool IS_FLOAT = (typename ts_opmath<T>::type)0.5 != 0 && sizeof(T) > 1;

// Floats are ordered by their bits: those of negative ones are inverted. `infinity`: the bits of infinity.
TS_FN Key ts_float_key(Key bits, Key infinity) {
    const Key magnitude = bits & (Key)~SIGN;
    if (magnitude > infinity) return MAX_KEY;
    if (magnitude == 0) return SIGN;
    return bits & SIGN ? (Key)~bits : (Key)(bits | SIGN);
}
TS_FN Key ts_float_bits(Key key) { return key & SIGN ? (Key)(key ^ SIGN) : (Key)~key; }

template <class E> struct ts_key_map {
    TS_FN Key key(E x) { return (Key)((Key)x ^ SIGN); }
    TS_FN E element(Key key) { return (E)(Key)(key ^ SIGN); }
};
template <> struct ts_key_map<ts_u8> {
    TS_FN Key key(ts_u8 x) { return (Key)x; }
    TS_FN ts_u8 element(Key key) { return (ts_u8)key; }
};
template <> struct ts_key_map<ts_b8> {
    TS_FN Key key(ts_b8 x) { return (Key)(x.byte != 0); }
    TS_FN ts_b8 element(Key key) { return ts_b8{(unsigned char)key}; }
};
template <> struct ts_key_map<ts_f16> {
    TS_FN Key key(ts_f16 x) { return ts_float_key((Key)x.bits, (Key)0x7c00u); }
    TS_FN ts_f16 element(Key key) { return ts_f16{(ts_u16)ts_float_bits(key)}; }
};
template <> struct ts_key_map<ts_bf16> {
    TS_FN Key key(ts_bf16 x) { return ts_float_key((Key)x.bits, (Key)0x7f80u); }
    TS_FN ts_bf16 element(Key key) { return ts_bf16{(ts_u16)ts_float_bits(key)}; }
};
template <> struct ts_key_map<ts_f32> {
    TS_FN Key key(ts_f32 x) { return ts_float_key((Key)__float_as_uint(x), (Key)0x7f800000u); }
    TS_FN ts_f32 element(Key key) { return __uint_as_float((ts_u32)ts_float_bits(key)); }
};
template <> struct ts_key_map<ts_f64> {
    TS_FN Key key(ts_f64 x) { return ts_float_key((Key)__double_as_longlong(x), (Key)0x7ff0000000000000ULL); }
    TS_FN ts_f64 element(Key key) { return __longlong_as_double((ts_i64)ts_float_bits(key)); }
};

TS_FN Key ts_key(T x, bool descending) {
    const Key key = ts_key_map<T>::key(x);
    return descending ? (Key)~key : key;
}
// The element of a key; `row` and `position` say where it comes from, since the sign of a zero and the bits of a NaN are not
// in its key.
TS_FN T ts_element(Key key, bool descending, const T* row, ts_i64 position) {
    if (descending) key = (Key)~key;
    if (IS_FLOAT && (key == MAX_KEY || key == SIGN)) return row[position];
    return ts_key_map<T>::element(key);
}

// A key with its position, to be compared as a whole: equal keys stay in order.
struct ts_key_position {
    ts_u64 key, position;
};
TS_FN bool ts_entry_less(ts_u64 a, ts_u64 b) { return a < b; }
TS_FN bool ts_entry_less(const ts_key_position& a, const ts_key_position& b) {
    return a.key < b.key || (a.key == b.key && a.position < b.position);
}
template <int WIDE> struct ts_entry { typedef ts_u64 type; };
template <> struct ts_entry<1> { typedef ts_key_position type; };
typedef typename ts_entry<(KEY_BITS > 32)>::type Entry;

TS_FN void ts_make_entry(ts_u64 key, ts_u32 position, ts_u64& to) { to = key << 32 | position; }
TS_FN void ts_make_entry(ts_u64 key, ts_u32 position, ts_key_position& to) { to = ts_key_position{key, position}; }
TS_FN ts_u32 ts_entry_position(ts_u64 e) { return (ts_u32)e; }
TS_FN ts_u32 ts_entry_position(const ts_key_position& e) { return (ts_u32)e.position; }
TS_FN Key ts_entry_key(ts_u64 e) { return (Key)(e >> 32); }
TS_FN Key ts_entry_key(const ts_key_position& e) { return (Key)e.key; }
// Sorts after every other entry: no element has this position.
TS_FN void ts_padding_entry(Entry& to) { ts_make_entry(MAX_KEY, 0xffffffffu, to); }
