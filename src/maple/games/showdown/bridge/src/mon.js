/** What everybody knows of a Pokémon and of a side. */

import {numbered} from './schema.js';

/**
 * @typedef {import('./lexicon.js').Species} Species
 * @typedef {import('./lexicon.js').Move} Move
 */

const STATUS = numbered('status'), SIDES = numbered('sides');
const BOOST_COUNT = numbered('boosts').size;

/** A bit for each volatile, in one of two words. @type {Map<string, {low: number, high: number}>} */
export const VOLATILES = new Map([...numbered('volatiles')].map(([name, at]) =>
  [name, {low: at < 32 ? 1 << at : 0, high: at < 32 ? 0 : 1 << (at - 32)}]));

const ONE_TURN = {low: 0, high: 0};
for (const name of ['protected', 'endure', 'flinched']) {
  const {low, high} = VOLATILES.get(name) ?? {low: 0, high: 0};
  ONE_TURN.low |= low;
  ONE_TURN.high |= high;
}

/** One Pokémon as the public sees it. */
export class Mon {
  /**
   * @param {number} id its number on its side, in order of appearance
   * @param {string} name empty as long as it was only shown in team preview
   * @param {Species} species
   */
  constructor(id, name, species) {
    this.id = id;
    this.name = name;
    this.species = species;
    this.own = species; // what it is again after it leaves the field
    this.level = 100;
    this.hp = 1;
    this.hpBefore = 1; // when it came in: an illusion's damage was not its own
    this.status = 0;
    this.statusTurns = 0;
    this.item = 0;
    this.ability = species.ability;
    this.types = [species.types[0], species.types[1]];
    this.tera = 0;
    this.terastallized = false;
    /** @type {Move[]} */
    this.moves = [];
    this.used = [0, 0, 0, 0];
    this.low = 0; // volatiles 0-31
    this.high = 0; // volatiles 32-63
    this.boosts = new Int8Array(BOOST_COUNT);
    this.fainted = false;
    this.revision = 0; // raised by whatever moves its damage figures
  }

  /** @param {string} name @param {boolean} on */
  setVolatile(name, on) {
    const bits = VOLATILES.get(name);
    if (bits === undefined) return;
    this.low = on ? this.low | bits.low : this.low & ~bits.low;
    this.high = on ? this.high | bits.high : this.high & ~bits.high;
  }

  /** What lasts for a turn is over. */
  calm() {
    this.low &= ~ONE_TURN.low;
    this.high &= ~ONE_TURN.high;
  }

  /** @param {Species} species @param {boolean} forGood */
  become(species, forGood) {
    const [first, second] = this.terastallized ? this.types : species.types, ability = species.ability || this.ability;
    const same = species === this.species && first === this.types[0] && second === this.types[1] && ability === this.ability;
    if (forGood) this.own = species;
    if (same) return;
    this.species = species;
    this.types = [first, second];
    this.ability = ability;
    this.revision++;
  }

  /** @param {number} level */
  reach(level) {
    if (level === this.level) return;
    this.level = level;
    this.revision++;
  }

  /** Off the field: what does not last is gone. */
  leave() {
    this.low = this.high = 0;
    if (this.boosts.some(stage => stage !== 0)) this.revision++;
    this.boosts.fill(0);
    if (this.status === STATUS.get('tox')) this.statusTurns = 0;
    this.become(this.own, false);
  }

  /** @param {Move} move its place among the known ones, or -1 where there is no room */
  learn(move) {
    let at = this.moves.indexOf(move);
    if (at < 0 && this.moves.length < 4) {
      at = this.moves.push(move) - 1;
      this.revision++;
    }
    return at;
  }
}

/** One side as the public sees it. */
export class PublicSide {
  constructor() {
    /** @type {Mon[]} */
    this.mons = [];
    /** @type {Map<string, Mon>} */
    this.byName = new Map();
    /** @type {Mon | null} */
    this.active = null;
    this.size = 6;
    this.appeared = 0;
    this.fainted = 0;
    this.spent = false;
    this.conditions = new Uint8Array(SIDES.size); // layers, or the turn it began plus one
    this.began = new Uint16Array(SIDES.size);
  }
  /** One that team preview shows. @param {Species} species @param {number} level */
  preview(species, level) {
    const mon = new Mon(this.mons.length, '', species);
    mon.level = level;
    this.mons.push(mon);
  }

  /** Forget what team preview showed. */
  clearPreview() {
    this.mons = this.mons.filter(mon => mon.name !== '');
  }

  /** One comes in for the first time; its forme may have been kept from team preview. @param {string} name @param {Species} species */
  appear(name, species) {
    const unnamed = this.mons.filter(mon => mon.name === '');
    let mon = unnamed.find(each => each.species === species) ?? unnamed.find(each => each.species.base === species.base);
    if (!mon) {
      mon = new Mon(this.mons.length, name, species);
      this.mons.push(mon);
    }
    mon.name = name;
    mon.revision++;
    this.byName.set(name, mon);
    this.appeared++;
    return mon;
  }
}
