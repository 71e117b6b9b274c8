/**
 * Expected damage in closed form: the simulator's formula with the mean roll, without luck or accuracy, over what the
 * seat knows. Rare modifiers are left out; how far that is from what the simulator deals is measured in damage.test.js.
 */

import {MARK, POWER_BY} from './lexicon.js';
import {numbered, schema} from './schema.js';

/** @typedef {import('./lexicon.js').Lexicon} Lexicon */
/** @typedef {import('./lexicon.js').Move} Move */
/** @typedef {import('./lexicon.js').Species} Species */
/** @typedef {import('./tracker.js').Tracker} Tracker */
/** @typedef {import('./mon.js').PublicSide} PublicSide */

const [HP, ATK, DEF, SPA, SPD, SPE] = [0, 1, 2, 3, 4, 5];
const PHYSICAL = 1;
const MEAN_ROLL = 0.925;
const TYPES = numbered('types'), WEATHER = numbered('weather'), TERRAIN = numbered('terrain');
const SIDES = numbered('sides');
const type = (/** @type {string} */ name) => TYPES.get(name) ?? -1;
const [FIRE, WATER, FLYING, GHOST, NORMAL, FIGHTING] =
  [type('Fire'), type('Water'), type('Flying'), type('Ghost'), type('Normal'), type('Fighting')];
const BURNED = 1, PARALYZED = 2;
const NO_ITEM = 1;
const RUINED = 0.75;
// Items that make one type of move stronger.
const HELPFUL = {
  Normal: ['silkscarf'], Fire: ['charcoal', 'flameplate'], Water: ['mysticwater', 'splashplate', 'seaincense', 'waveincense'],
  Electric: ['magnet', 'zapplate'], Grass: ['miracleseed', 'meadowplate', 'roseincense'], Ice: ['nevermeltice', 'icicleplate'],
  Fighting: ['blackbelt', 'fistplate'], Poison: ['poisonbarb', 'toxicplate'], Ground: ['softsand', 'earthplate'],
  Flying: ['sharpbeak', 'skyplate'], Psychic: ['twistedspoon', 'mindplate', 'oddincense', 'souldew'],
  Bug: ['silverpowder', 'insectplate'], Rock: ['hardstone', 'stoneplate', 'rockincense'], Ghost: ['spelltag', 'spookyplate'],
  Dragon: ['dragonfang', 'dracoplate', 'souldew'], Dark: ['blackglasses', 'dreadplate'], Steel: ['metalcoat', 'ironplate'],
  Fairy: ['pixieplate', 'fairyfeather'],
};
/** @type {[string, number][]} abilities that keep moves of a kind away */
const PROOF = [['soundproof', MARK.sound], ['bulletproof', MARK.bullet]];
/** @type {[string, number, number][]} abilities that make moves of a kind stronger, and by how much */
const FOND = [
  ['ironfist', MARK.punch, 1.2], ['reckless', MARK.recoil, 1.2], ['sheerforce', MARK.secondary, 1.3],
  ['toughclaws', MARK.contact, 1.3], ['strongjaw', MARK.bite, 1.5], ['sharpness', MARK.slicing, 1.5],
  ['megalauncher', MARK.pulse, 1.5], ['punkrock', MARK.sound, 1.3],
];

/** @param {number} stage -6 to 6 */
export function stageFactor(stage) {
  return stage >= 0 ? (2 + stage) / 2 : 2 / (2 - stage);
}

/** What damage depends on, of one Pokémon. */
export class Fighter {
  constructor() {
    this.level = 100;
    this.weight = 0; // kg
    this.stats = new Float64Array(6);
    this.boosts = new Int8Array(schema.lists.boosts?.length ?? 7);
    this.first = 0; // its types
    this.second = 0;
    this.bornFirst = 0; // the same before it terastallized
    this.bornSecond = 0;
    this.terastallized = false;
    this.item = 0;
    this.ability = 0;
    this.status = 0;
  }

  /** Stats as an even spread of effort would give. @param {Species} species @param {number} generation */
  guessStats(species, generation) {
    const extra = generation <= 2 ? 93 : 52;
    for (let i = 0; i < 6; i++) {
      const grown = Math.floor((2 * species.stats[i] + extra) * this.level / 100);
      this.stats[i] = grown + (i === HP ? this.level + 10 : 5);
    }
    if (species.stats[HP] === 1) this.stats[HP] = 1;
  }

  /** @param {number} stat @param {boolean} boosted */
  stat(stat, boosted) {
    const value = this.stats[stat];
    return boosted ? value * stageFactor(this.boosts[stat - 1]) : value;
  }
}

/** A 1 for each of these numbers: one load to ask, where a set is a search. @param {number[]} numbers @param {number | undefined} limit */
function marked(numbers, limit) {
  const marks = new Uint8Array(limit ?? 0);
  for (const number of numbers) marks[number] = 1;
  return marks;
}

/** Damage between fighters under one format's rules. */
export class DamageModel {
  /** @param {Lexicon} lexicon */
  constructor(lexicon) {
    this.lexicon = lexicon;
    const item = (/** @type {string[]} */ names) => marked(names.map(name => lexicon.item(name)), schema.limits.items);
    const ability = (/** @type {string[]} */ names) => marked(names.map(name => lexicon.ability(name)), schema.limits.abilities);
    this.band = item(['choiceband']);
    this.specs = item(['choicespecs']);
    this.orb = item(['lifeorb']);
    this.belt = item(['expertbelt']);
    this.vest = item(['assaultvest']);
    this.eviolite = item(['eviolite']);
    this.scarf = item(['choicescarf']);
    this.strong = ability(['hugepower', 'purepower']);
    this.adaptable = ability(['adaptability']);
    this.technical = ability(['technician']);
    this.solid = ability(['filter', 'solidrock', 'prismarmor']);
    this.furred = ability(['furcoat']);
    this.scaled = ability(['icescales']);
    this.gutsy = ability(['guts']);
    this.thick = ability(['thickfat']);
    this.scrappy = ability(['scrappy', 'mindseye']);
    this.tinted = ability(['tintedlens']);
    this.breaking = ability(['moldbreaker', 'teravolt', 'turboblaze']);
    this.wonder = ability(['wonderguard']);
    this.vessel = ability(['vesselofruin']);
    this.tablets = ability(['tabletsofruin']);
    this.sword = ability(['swordofruin']);
    this.beads = ability(['beadsofruin']);
    this.proof = new Uint16Array(schema.limits.abilities ?? 0); // a bit for each mark of moves that do no harm to an ability
    this.fond = new Uint16Array(schema.limits.abilities ?? 0); // the same of moves that one makes stronger, and by how much
    this.fondness = new Float64Array(schema.limits.abilities ?? 0).fill(1);
    for (const [name, mark] of PROOF) this.proof[lexicon.ability(name)] = mark;
    for (const [name, mark, factor] of FOND) {
      this.fond[lexicon.ability(name)] = mark;
      this.fondness[lexicon.ability(name)] = factor;
    }
    this.proof[0] = this.fond[0] = 0;
    this.helpful = new Int32Array(schema.limits.items ?? 0); // a bit for each type that an item makes stronger
    for (const [helped, names] of Object.entries(HELPFUL)) {
      for (const name of names) this.helpful[lexicon.item(name)] |= 1 << type(helped);
    }
    this.helpful[0] = this.helpful[NO_ITEM] = 0;
    this.help = lexicon.generation >= 4 ? 1.2 : 1.1;
    this.criticalFactor = lexicon.generation >= 6 ? 1.5 : 2;
    this.immune = new Int8Array(schema.limits.abilities ?? 0).fill(-1); // the type that an ability takes no harm from
    for (const [name, harmless] of Object.entries({
      levitate: 'Ground', eartheater: 'Ground', voltabsorb: 'Electric', lightningrod: 'Electric', motordrive: 'Electric',
      waterabsorb: 'Water', stormdrain: 'Water', dryskin: 'Water', flashfire: 'Fire', wellbakedbody: 'Fire',
      sapsipper: 'Grass',
    })) {
      const number = lexicon.ability(name);
      if (number) this.immune[number] = type(harmless);
    }
  }

  /**
   * How strongly a move's type hits, 0 to 4.
   * @param {Fighter} attacker @param {Fighter} defender @param {Move} move
   */
  effectiveness(attacker, defender, move) {
    const {chart, typeCount} = this.lexicon, row = move.type * typeCount;
    let first = chart[row + defender.first];
    let second = defender.second ? chart[row + defender.second] : 1;
    if ((move.type === NORMAL || move.type === FIGHTING) && this.scrappy[attacker.ability]) {
      if (defender.first === GHOST) first = 1;
      if (defender.second === GHOST) second = 1;
    }
    if (this.unharmed(defender, move) && !this.breaking[attacker.ability]) return 0;
    if (move.key === 'freezedry') {
      if (defender.first === WATER) first = 2;
      if (defender.second === WATER) second = 2;
    }
    return first * second;
  }

  /** Whether an ability keeps a move from doing anything. @param {Fighter} defender @param {Move} move */
  unharmed({ability}, move) {
    return this.immune[ability] === move.type || (this.proof[ability] & move.marks) !== 0;
  }

  /** A move's power, as it depends on who uses it on whom. @param {Fighter} attacker @param {Fighter} defender @param {Move} move */
  power(attacker, defender, {power, powerBy}) {
    switch (powerBy) {
    case POWER_BY.itself:
      return power;
    case POWER_BY.item:
      return defender.item === NO_ITEM ? power : 1.5 * power;
    case POWER_BY.status:
      return attacker.status ? 2 * power : power;
    case POWER_BY.blast:
      return 2 * power;
    case POWER_BY.weight:
      return byWeight(defender.weight);
    default:
      return byRatio(attacker.weight / Math.max(0.1, defender.weight));
    }
  }

  /** @param {Fighter} attacker @param {Move} move */
  sameType(attacker, move) {
    const born = move.type === attacker.bornFirst || move.type === attacker.bornSecond;
    if (!attacker.terastallized) return born ? (this.adaptable[attacker.ability] ? 2 : 1.5) : 1;
    const turned = move.type === attacker.first;
    return born && turned ? 2 : born || turned ? 1.5 : 1;
  }

  /**
   * The expected share of the defender's full HP that a move takes.
   * @param {Fighter} attacker @param {Fighter} defender @param {Move} move @param {Tracker} field @param {PublicSide} side the defender's
   */
  share(attacker, defender, move, field, side) {
    if (move.category === 0) return 0;
    const full = defender.stats[HP] || 1;
    const effect = this.effectiveness(attacker, defender, move);
    if (effect === 0) return 0;
    if (effect < 2 && this.wonder[defender.ability]) return 0;
    if (move.fixed || move.level) return (move.level ? attacker.level : move.fixed) / full;
    if (move.half) return 0.5;
    const physical = move.category === PHYSICAL;
    const source = move.foul ? defender : attacker;
    let attack = source.stat(move.attackStat || (physical ? ATK : SPA), true);
    let defense = defender.stat(move.defenseStat || (physical ? DEF : SPD), true);
    let power = this.power(attacker, defender, move) * move.hits;
    if (physical) {
      if (attacker.status && this.gutsy[attacker.ability]) attack *= 1.5;
      if (this.tablets[defender.ability]) attack *= RUINED;
      if (this.sword[attacker.ability]) defense *= RUINED;
      if (this.band[attacker.item]) attack *= 1.5;
      if (this.strong[attacker.ability]) attack *= 2;
      if (this.furred[defender.ability]) defense *= 2;
    } else {
      if (this.specs[attacker.item]) attack *= 1.5;
      if (this.vest[defender.item]) defense *= 1.5;
      if (this.vessel[defender.ability]) attack *= RUINED;
      if (this.beads[attacker.ability]) defense *= RUINED;
    }
    if (this.eviolite[defender.item]) defense *= 1.5;
    if (move.power <= 60 && this.technical[attacker.ability]) power *= 1.5;
    if (this.fond[attacker.ability] & move.marks) power *= this.fondness[attacker.ability];
    const base = Math.floor(Math.floor(2 * attacker.level / 5 + 2) * power * attack / Math.max(1, defense) / 50) + 2;
    return base * effect * this.sameType(attacker, move) * MEAN_ROLL *
      this.circumstances(attacker, defender, move, field, side, effect, physical) / full;
  }

  /**
   * @param {Fighter} attacker @param {Fighter} defender @param {Move} move @param {Tracker} field @param {PublicSide} side
   * @param {number} effect @param {boolean} physical
   */
  circumstances(attacker, defender, move, field, side, effect, physical) {
    let factor = 1;
    if (field.weather !== 0) factor *= this.weatherFactor(field.weather, move.type);
    if (field.terrain !== 0 && attacker.first !== FLYING && attacker.second !== FLYING) {
      if (TERRAIN_TYPE[field.terrain] === move.type) factor *= this.lexicon.generation >= 8 ? 1.3 : 1.5;
    }
    if (physical && attacker.status === BURNED && !this.gutsy[attacker.ability] && move.key !== 'facade') factor *= 0.5;
    if (side.conditions[physical ? REFLECT : SCREEN] || side.conditions[VEIL]) factor *= 0.5;
    if (move.critical) factor *= this.criticalFactor;
    if (this.helpful[attacker.item] >> move.type & 1) factor *= this.help;
    if (this.orb[attacker.item]) factor *= 1.3;
    else if (effect > 1 && this.belt[attacker.item]) factor *= 1.2;
    if (effect > 1 && this.solid[defender.ability]) factor *= 0.75;
    if (effect < 1 && this.tinted[attacker.ability]) factor *= 2;
    if (!physical && this.scaled[defender.ability]) factor *= 0.5;
    if (this.thick[defender.ability] && (move.type === FIRE || move.type === ICE)) factor *= 0.5;
    return factor;
  }

  /** @param {number} weather @param {number} moveType */
  weatherFactor(weather, moveType) {
    const wet = weather === RAIN || weather === DELUGE, bright = weather === SUN || weather === DROUGHT;
    if (moveType === WATER) return wet ? 1.5 : bright ? (weather === DROUGHT ? 0 : 0.5) : 1;
    if (moveType === FIRE) return bright ? 1.5 : wet ? (weather === DELUGE ? 0 : 0.5) : 1;
    return 1;
  }

  /** @param {Fighter} fighter @param {PublicSide} side its own */
  speed(fighter, side) {
    let speed = fighter.stat(SPE, true);
    if (this.scarf[fighter.item]) speed *= 1.5;
    if (fighter.status === PARALYZED) speed *= this.lexicon.generation >= 7 ? 0.5 : 0.25;
    if (side.conditions[TAILWIND]) speed *= 2;
    return speed;
  }
}

/** The power of a move that is as strong as its target is heavy. @param {number} weight in kg */
function byWeight(weight) {
  return weight >= 200 ? 120 : weight >= 100 ? 100 : weight >= 50 ? 80 : weight >= 25 ? 60 : weight >= 10 ? 40 : 20;
}

/** The power of a move that is as strong as its user is heavier. @param {number} ratio */
function byRatio(ratio) {
  return ratio >= 5 ? 120 : ratio >= 4 ? 100 : ratio >= 3 ? 80 : ratio >= 2 ? 60 : 40;
}

const ICE = type('Ice');
const [RAIN, SUN, DELUGE, DROUGHT] =
  ['raindance', 'sunnyday', 'primordialsea', 'desolateland'].map(name => WEATHER.get(name) ?? -1);
const [REFLECT, SCREEN, VEIL, TAILWIND] = /** @type {[number, number, number, number]} */ (
  ['reflect', 'lightscreen', 'auroraveil', 'tailwind'].map(name => SIDES.get(name) ?? 0));
const TERRAIN_TYPE = [...TERRAIN.keys()].map(name => (
  {electricterrain: type('Electric'), grassyterrain: type('Grass'), psychicterrain: type('Psychic')}[name] ?? -1));
