/**
 * What a move does with the generation's gimmick: terastallized, as a Z-move or a Max Move with the power that the simulator's data
 * give it, or by a user that has mega-evolved. A mega-evolved user's stats grow as its forme's do, whatever its nature.
 */

import {gimmickOf} from './actions.js';
import {Fighter} from './damage.js';
import {POWER_BY} from './lexicon.js';
import {numbered} from './schema.js';

/**
 * @typedef {import('./damage.js').DamageModel} DamageModel
 * @typedef {import('./lexicon.js').Lexicon} Lexicon
 * @typedef {import('./lexicon.js').Move} Move
 * @typedef {import('./mon.js').PublicSide} PublicSide
 * @typedef {import('./own.js').Own} Own
 * @typedef {import('./simulator.js').ActiveRequest} ActiveRequest
 * @typedef {import('./tracker.js').Tracker} Tracker
 */

const GIMMICKS = numbered('gimmick');
const [TERA, DYNAMAX, MEGA, Z_MOVE, ULTRA] = ['terastallize', 'dynamax', 'mega', 'zmove', 'ultra'].map(name => GIMMICKS.get(name) ?? 0);
const NO_ITEM = 1;
const OF_THEIR_OWN = ['gmaxdrumsolo', 'gmaxfireball', 'gmaxhydrosnipe']; // Max Moves whose power is not the base move's

/** The gimmicks of one format. */
export class Gimmicks {
  /** @param {Lexicon} lexicon @param {DamageModel} model */
  constructor(lexicon, model) {
    this.lexicon = lexicon;
    this.model = model;
    this.changed = new Fighter();
    /** @type {Map<string, Move>} */
    this.grown = new Map();
  }

  /**
   * The expected share of the target's full HP, plain and with the gimmick.
   * @param {Own} own @param {Fighter} target @param {Move} move @param {ActiveRequest} active @param {number} at the move's place in the request
   * @param {Tracker} field @param {PublicSide} side the target's @returns {[number, number]}
   */
  shares(own, target, move, active, at, field, side) {
    const by = (/** @type {Fighter} */ user, /** @type {Move} */ played) => this.model.share(user, target, played, field, side);
    const large = active.maxMoves?.maxMoves[at]?.move;
    if (large && !active.canDynamax) { // it is large already
      const share = by(this.large(own), this.strong(move, large, true));
      return [share, share];
    }
    const plain = by(own.fighter, move);
    switch (gimmickOf(active)) {
    case TERA:
      return [plain, plain * teraFactor(own, move)];
    case DYNAMAX:
      return [plain, large ? by(this.large(own), this.strong(move, large, true)) : plain];
    case Z_MOVE: {
      const offered = active.canZMove?.[at];
      return [plain, offered ? by(own.fighter, this.strong(move, offered.move, false)) : plain];
    }
    case MEGA:
    case ULTRA:
      return [plain, by(this.evolved(own), move)];
    default:
      return [plain, plain];
    }
  }

  /** A move as the Z-move or Max Move of a name. @param {Move} move @param {string} name @param {boolean} max */
  strong(move, name, max) {
    if (move.category === 0) return move;
    const key = `${name} ${move.key} ${move.power}`;
    let found = this.grown.get(key);
    if (!found) {
      const {dex} = this.lexicon, base = dex.moves.get(move.key), entry = dex.moves.get(name);
      const own = max ? OF_THEIR_OWN.includes(entry.id) : entry.basePower > 1; // of one species alone
      const power = own ? entry.basePower : (max ? base.maxMove : base.zMove)?.basePower ?? move.power;
      const {category, type} = own && !max ? this.lexicon.move(name) : move;
      found = {
        ...move, key: entry.id, power, category, type, hits: 1, fixed: 0, half: false, level: false, foul: false, attackStat: 0, defenseStat: 0,
        powerBy: POWER_BY.itself, marks: 0, critical: false,
      };
      this.grown.set(key, found);
    }
    return found;
  }

  /** A user once it is large: choice items do nothing for it. @param {Own} own */
  large({fighter}) {
    const {model} = this, user = this.copy(fighter);
    if (model.band[fighter.item] || model.specs[fighter.item]) user.item = NO_ITEM;
    return user;
  }

  /** A user once it has mega-evolved or burst. @param {Own} own */
  evolved(own) {
    const {dex} = this.lexicon, stone = dex.items.get(own.item).megaStone, kin = dex.species.get(own.forme);
    const others = /** @type {string[]} */ (kin.otherFormes ?? []);
    const forme = (typeof stone === 'string' ? stone : stone?.[kin.baseSpecies]) ?? others.find(name => {
      const {isMega, requiredMove, forme: called} = dex.species.get(name);
      return called === 'Ultra' || isMega && requiredMove;
    }) ?? (kin.baseSpecies === 'Necrozma' ? 'Necrozma-Ultra' : '');
    const user = this.copy(own.fighter);
    if (!forme) return user;
    const before = this.lexicon.species(own.forme), after = this.lexicon.species(forme);
    for (let i = 1; i < user.stats.length; i++) user.stats[i] += Math.floor((after.stats[i] - before.stats[i]) * user.level / 50);
    [user.first, user.second] = [user.bornFirst, user.bornSecond] = after.types;
    user.ability = after.ability || user.ability;
    user.weight = after.weight;
    return user;
  }

  /** @param {Fighter} fighter */
  copy(fighter) {
    const {stats, boosts} = this.changed;
    stats.set(fighter.stats);
    boosts.set(fighter.boosts);
    return Object.assign(this.changed, fighter, {stats, boosts});
  }
}

/** How much more a move does once its user has terastallized. @param {Own} own @param {Move} move */
function teraFactor(own, move) {
  if (own.fighter.terastallized || own.tera === 0 || move.type !== own.tera) return 1;
  return move.type === own.bornFirst || move.type === own.bornSecond ? 2 / 1.5 : 1.5;
}
