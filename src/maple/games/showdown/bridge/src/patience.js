/** How long servers may take: everything follows from the time that one word of theirs may take. */

/** All in milliseconds. */
export class Patience {
  /** @param {number} seconds to answer a login or a challenge */
  constructor(seconds) {
    this.word = 1000 * seconds;
    this.ping = this.word / 3;
    this.silent = 4 / 3 * this.word; // without any sign of life on a connection
    this.still = 6 * this.word; // without a line in a battle whose move is not ours
    this.gone = 4 * this.word; // until a server that went away, or began to refuse, is given up
    this.retry = Math.min(2_000, this.word / 4);
  }
}

/** @param {number} ms @returns {Promise<void>} */
export function pause(ms) {
  return new Promise(resolve => { setTimeout(resolve, ms); });
}
