/** The simulator's own lists as small integers, and what the encoder needs to know of species and moves. */

import {numbered, schema} from './schema.js';

/**
 * @typedef {import('./simulator.js').Dex} Dex
 * @typedef {{id: number, key: string, power: number, category: number, type: number, accuracy: number, priority: number,
 *   hits: number, pp: number, fixed: number, half: boolean, level: boolean, foul: boolean, attackStat: number,
 *   defenseStat: number, powerBy: number, marks: number, critical: boolean}} Move
 * @typedef {{id: number, base: string, types: [number, number], stats: number[], ability: number, weight: number}} Species
 */

const TYPES = numbered('types');
const CATEGORIES = numbered('category');
const STATS = schema.lists.stats ?? [];
const UNKNOWN_POWER = 60; // of moves whose power depends on the situation
const FULL_POWER = new Map([['return', 102], ['frustration', 102]]); // as everybody plays them

/** What a move's power depends on, besides itself. */
export const POWER_BY = {itself: 0, item: 1, status: 2, blast: 3, weight: 4, weights: 5};
const DEPENDENT = new Map(Object.entries({
  knockoff: POWER_BY.item, facade: POWER_BY.status, explosion: POWER_BY.blast, selfdestruct: POWER_BY.blast,
  lowkick: POWER_BY.weight, grassknot: POWER_BY.weight, heavyslam: POWER_BY.weights, heatcrash: POWER_BY.weights,
}));
const KNOCKS_SINCE = 6, BLASTS_UNTIL = 4, WEIGHS_SINCE = 3; // generations

/** Bits for what abilities look for in a move. */
export const MARK = {sound: 1, bullet: 2, punch: 4, bite: 8, pulse: 16, slicing: 32, contact: 64, recoil: 128, secondary: 256};

/** @param {any} entry of the simulator's list of moves */
function marksOf({flags, recoil, hasCrashDamage, secondaries, hasSheerForce}) {
  const shown = {...flags, recoil: recoil || hasCrashDamage, secondary: secondaries || hasSheerForce};
  return Object.entries(MARK).reduce((marks, [name, bit]) => (shown[name] ? marks | bit : marks), 0);
}

/** A key as the simulator writes ids: lower case, letters and digits. */
/** @param {string} name */
export function toKey(name) {
  return name.toLowerCase().replace(/[^a-z0-9]+/g, '');
}

/** @param {string} name the number of a type in the schema's list, 0 for one that it does not know */
export function typeNumber(name) {
  return TYPES.get(name) ?? 0;
}

/**
 * @param {{id: string}[]} all
 * @param {string} kind
 * @param {number} first
 */
function enumerate(all, kind, first) {
  const limit = schema.limits[kind] ?? 0;
  if (all.length + first > limit) throw new Error(`the simulator has ${all.length} ${kind}; schema.json allows ${limit}`);
  return new Map(all.map((entry, i) => [entry.id, i + first]));
}

/** Numbers for names, and facts for the encoder, of one generation's rules. */
export class Lexicon {
  /**
   * @param {Dex} all the dex that numbers things, the same for all formats
   * @param {Dex} dex the format's own
   */
  constructor(all, dex) {
    this.generation = dex.gen;
    this.dex = dex;
    this.speciesNumber = enumerate(all.species.all(), 'species', 1);
    this.itemNumber = enumerate(all.items.all(), 'items', 2);
    this.abilityNumber = enumerate(all.abilities.all(), 'abilities', 1);
    this.moveNumber = enumerate(all.moves.all(), 'moves', 1);
    /** @type {Map<string, Species>} */
    this.knownSpecies = new Map();
    /** @type {Map<string, Move>} */
    this.knownMoves = new Map();
    /** @type {Map<string, number>} */
    this.knownItems = new Map([['', 1]]);
    /** @type {Map<string, number>} */
    this.knownAbilities = new Map();
    /** How strongly a type hits a type: chart[attacking * types + defending]. */
    this.chart = this.typeChart();
    this.typeCount = TYPES.size;
  }

  typeChart() {
    const n = TYPES.size, chart = new Float32Array(n * n).fill(1);
    for (const [defending, d] of TYPES) {
      const taken = this.dex.types.get(defending).damageTaken ?? {};
      for (const [attacking, a] of TYPES) {
        chart[a * n + d] = [1, 2, 0.5, 0][taken[attacking] ?? 0] ?? 1;
      }
    }
    return chart;
  }

  /** @param {string} name @returns {Species} */
  species(name) {
    let found = this.knownSpecies.get(name);
    if (!found) {
      const entry = this.dex.species.get(name);
      const [first, second] = entry.types.map(typeNumber);
      const abilities = Object.values(entry.abilities ?? {});
      found = {
        id: this.speciesNumber.get(entry.id) ?? 0,
        types: [first ?? 0, second ?? 0],
        base: entry.baseSpecies,
        stats: STATS.map(stat => entry.baseStats[stat] ?? 0),
        ability: abilities.length === 1 ? this.ability(abilities[0] ?? '') : 0,
        weight: entry.weightkg ?? 0,
      };
      this.knownSpecies.set(name, found);
    }
    return found;
  }

  /** @param {string} name @returns {Move} */
  move(name) {
    let found = this.knownMoves.get(name);
    if (!found) {
      // Requests write the power of some moves behind their name, as in return102.
      const key = toKey(name), bare = key.replace(/\d+$/, '');
      let entry = this.dex.moves.get(key), told = 0;
      if (!entry.exists) {
        entry = this.dex.moves.get(bare);
        told = Number(key.slice(bare.length));
      }
      const hits = entry.multihit;
      const average = this.generation >= 5 ? 3.1 : 3;
      found = {
        id: this.moveNumber.get(entry.id) ?? 0,
        key: entry.id,
        power: told || entry.basePower || (entry.basePowerCallback ? FULL_POWER.get(entry.id) ?? UNKNOWN_POWER : 0),
        category: CATEGORIES.get((entry.category ?? 'Status').toLowerCase()) ?? 0,
        type: typeNumber(entry.type),
        accuracy: typeof entry.accuracy === 'number' ? entry.accuracy : 101,
        priority: entry.priority ?? 0,
        hits: Array.isArray(hits) ? average : hits ?? 1,
        pp: entry.noPPBoosts ? entry.pp : Math.floor((entry.pp ?? 1) * 8 / 5),
        fixed: typeof entry.damage === 'number' ? entry.damage : 0,
        half: typeof entry.damageCallback === 'function' && ['superfang', 'naturesmadness', 'ruination'].includes(entry.id),
        level: entry.damage === 'level',
        foul: entry.overrideOffensivePokemon === 'target',
        attackStat: Math.max(0, STATS.indexOf(entry.overrideOffensiveStat ?? '')), // 0: the category's own
        defenseStat: Math.max(0, STATS.indexOf(entry.overrideDefensiveStat ?? '')),
        powerBy: this.powerBy(entry.id),
        marks: marksOf(entry),
        critical: !!entry.willCrit,
      };
      this.knownMoves.set(name, found);
    }
    return found;
  }

  /** What the power of a move depends on in this generation. @param {string} id */
  powerBy(id) {
    const {generation} = this, by = DEPENDENT.get(id) ?? POWER_BY.itself;
    const holds = by === POWER_BY.item ? generation >= KNOCKS_SINCE :
      by === POWER_BY.blast ? generation <= BLASTS_UNTIL : generation >= WEIGHS_SINCE;
    return holds ? by : POWER_BY.itself;
  }

  /** @param {string} name 1 for none */
  item(name) {
    let found = this.knownItems.get(name);
    if (found === undefined) {
      found = this.itemNumber.get(toKey(name)) ?? 0;
      this.knownItems.set(name, found);
    }
    return found;
  }

  /** @param {string} name */
  ability(name) {
    let found = this.knownAbilities.get(name);
    if (found === undefined) {
      found = this.abilityNumber.get(toKey(name)) ?? 0;
      this.knownAbilities.set(name, found);
    }
    return found;
  }
}
