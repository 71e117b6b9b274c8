/** Numbers that are a function of what they are for: the same hash of a key as in Maple's Python side. */

const MASK = (1n << 64n) - 1n;
const GOLDEN = 0x9e3779b97f4a7c15n;

export const DEAL = 1, BANK = 9;

/** @param {bigint} word */
function scramble(word) {
  word = ((word ^ (word >> 30n)) * 0xbf58476d1ce4e5b9n) & MASK;
  word = ((word ^ (word >> 27n)) * 0x94d049bb133111ebn) & MASK;
  return word ^ (word >> 31n);
}

/**
 * The 64 random bits that belong to this very draw.
 * @param {bigint} seed @param {number[]} fields purpose, table, game, seat, decision, draw
 */
export function key(seed, fields) {
  return fields.reduce((state, field) => scramble(((state ^ (BigInt(field) & MASK)) + GOLDEN) & MASK), seed & MASK);
}

/** A seed as the simulator takes it, four 16-bit integers (its default kind costs a sixth more time). @param {bigint} word */
export function simulatorSeed(word) {
  return [48n, 32n, 16n, 0n].map(shift => Number((word >> shift) & 0xffffn)).join(',');
}

/** A small fast stream for play that need not be keyed: warm-up and measurements. */
export class Stream {
  /** @param {number} seed */
  constructor(seed) {
    this.state = seed >>> 0 || 1;
  }

  /** @param {number} n an integer below n */
  below(n) {
    let x = this.state;
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    this.state = x >>> 0;
    return this.state % n;
  }
}

/** A random open action. @param {number} mask @param {Stream} stream */
export function pick(mask, stream) {
  let count = 0;
  for (let bits = mask; bits; bits &= bits - 1) count++;
  let bits = mask;
  for (let skip = stream.below(count); skip > 0; skip--) bits &= bits - 1;
  return 31 - Math.clz32(bits & -bits);
}
