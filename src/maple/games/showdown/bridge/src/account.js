/** What a seat earns, in parts. */

/** What a seat earns comes in these parts; what each is worth is the owner's to say. */
export const REWARD_PARTS = ['win', 'faint', 'hp', 'status', 'turn'];
export const OUTCOME = {playing: 0, terminated: 1, truncated: 2, lost: 3};
export const SEATS = 2;
const [WIN, FAINT, HP, STATUS, TURN] = [0, 1, 2, 3, 4];

/** @typedef {{hp: number, fainted: number, ill: number}} Standing of a side: whole Pokémon's HP, how many fainted, how many have a status */

/** What a seat has gained so far, in parts, and what of that was told. */
export class Account {
  constructor() {
    this.standing = new Float64Array(REWARD_PARTS.length);
    this.told = new Float64Array(REWARD_PARTS.length);
  }

  /** Bring it up to date. @param {Standing} mine @param {Standing} theirs @param {number} turn @param {number} won 1, -1, or 0 for undecided */
  update(mine, theirs, turn, won) {
    this.standing[FAINT] = theirs.fainted - mine.fainted;
    this.standing[HP] = mine.hp - theirs.hp;
    this.standing[STATUS] = theirs.ill - mine.ill;
    this.standing[TURN] = -turn;
    this.standing[WIN] = won;
  }

  /** Write what was earned since the last time. @param {Float32Array} f32 @param {number} at */
  tell(f32, at) {
    for (let i = 0; i < this.standing.length; i++) f32[at + i] = this.standing[i] - this.told[i];
    this.told.set(this.standing);
  }
}
