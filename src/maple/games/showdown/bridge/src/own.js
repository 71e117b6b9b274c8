/** What a seat knows of its own Pokémon, from its requests. */

import {Fighter} from './damage.js';
import {typeNumber} from './lexicon.js';
import {numbered, schema} from './schema.js';

/**
 * @typedef {import('./lexicon.js').Lexicon} Lexicon
 * @typedef {import('./lexicon.js').Move} Move
 * @typedef {import('./simulator.js').RequestMember} RequestMember
 */

const STATUS = numbered('status'), STATS = schema.lists.stats ?? [], MOVES = 4;

/** One of the seat's own Pokémon, as its requests tell. */
export class Own {
  /** @param {number} id @param {string} ident */
  constructor(id, ident) {
    this.id = id;
    this.ident = ident;
    /** @type {import('./mon.js').Mon | undefined} what the public sees of it, once it has appeared */
    this.shown = undefined;
    this.fighter = new Fighter();
    this.revision = 0;
    this.details = '';
    this.condition = '';
    this.name = '';
    this.species = 0;
    this.forme = ''; // its name in the simulator's list
    this.item = '';
    this.ability = '';
    this.bornFirst = 0;
    this.bornSecond = 0;
    this.hp = 1;
    this.fainted = false;
    this.active = false;
    this.changed = true; // since the request before
    this.tera = 0;
    /** @type {string[]} */
    this.moveIds = [];
    /** @type {Move[]} */
    this.moves = [];
    this.pp = new Float32Array(MOVES).fill(1);
  }

  /** Whether it sits on the bench as it did before. @param {RequestMember} member */
  rests(member) {
    return !member.active && !this.active && member.condition === this.condition && member.item === this.item &&
      (member.ability ?? member.baseAbility) === this.ability && member.details === this.details;
  }

  /** @param {RequestMember} member @param {Lexicon} lexicon */
  update(member, lexicon) {
    this.changed = !this.rests(member);
    if (!this.changed) return;
    const {fighter} = this;
    this.active = member.active;
    this.ability = member.ability ?? member.baseAbility;
    this.item = member.item;
    if (member.details !== this.details) this.updateDetails(member, lexicon);
    if (member.condition !== this.condition) this.updateCondition(member.condition);
    const item = lexicon.item(member.item), ability = lexicon.ability(this.ability);
    if (item !== fighter.item || ability !== fighter.ability) {
      fighter.item = item;
      fighter.ability = ability;
      this.revision++;
    }
    for (let i = 1; i < STATS.length; i++) {
      const value = member.stats[STATS[i]] ?? 0;
      if (fighter.stats[i] !== value) {
        fighter.stats[i] = value;
        this.revision++;
      }
    }
    for (let i = 0; i < member.moves.length && i < MOVES; i++) {
      if (member.moves[i] !== this.moveIds[i]) this.updateMoves(member.moves, lexicon);
    }
    const turned = !!member.terastallized;
    if (turned !== fighter.terastallized) {
      fighter.terastallized = turned;
      this.revision++;
    }
  }

  /** @param {RequestMember} member @param {Lexicon} lexicon */
  updateDetails(member, lexicon) {
    const parts = member.details.split(', '), species = lexicon.species(parts[0] ?? '');
    this.details = member.details;
    this.name = member.ident.slice(member.ident.indexOf(': ') + 2);
    this.species = species.id;
    this.forme = parts[0] ?? '';
    [this.bornFirst, this.bornSecond] = species.types;
    this.tera = member.teraType ? typeNumber(member.teraType) : 0;
    const level = parts.find(part => /^L\d+$/.test(part));
    this.fighter.level = level ? Number(level.slice(1)) : 100;
    this.fighter.weight = species.weight;
    this.revision++;
  }

  /** @param {string} condition such as `120/281 par` or `0 fnt` */
  updateCondition(condition) {
    const [health, status] = condition.split(' '), [left, full] = (health ?? '').split('/');
    const {fighter} = this, before = fighter.status;
    this.condition = condition;
    this.fainted = status === 'fnt';
    this.hp = this.fainted ? 0 : Number(left) / Number(full);
    if (full !== undefined && fighter.stats[0] !== Number(full)) {
      fighter.stats[0] = Number(full);
      this.revision++;
    }
    fighter.status = this.fainted ? 0 : STATUS.get(status ?? '') ?? 0;
    if (fighter.status !== before) this.revision++;
  }

  /** @param {string[]} ids @param {Lexicon} lexicon */
  updateMoves(ids, lexicon) {
    this.moveIds = ids.slice(0, MOVES);
    this.moves = this.moveIds.map(id => lexicon.move(id));
    this.revision++;
  }
}
