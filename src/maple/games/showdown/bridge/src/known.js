/** What a seat knows of both teams, brought up to date with its requests and the public log. */

import {Fighter} from './damage.js';
import {Own} from './own.js';

/**
 * @typedef {import('./lexicon.js').Lexicon} Lexicon
 * @typedef {import('./mon.js').Mon} Mon
 * @typedef {import('./simulator.js').Request} Request
 * @typedef {import('./tracker.js').Tracker} Tracker
 */

export const TEAM = 6;

/** Both teams as one seat knows them. */
export class Known {
  /** @param {Lexicon} lexicon @param {Tracker} tracker @param {0 | 1} seat */
  constructor(lexicon, tracker, seat) {
    this.lexicon = lexicon;
    this.mine = tracker.sides[seat];
    this.theirs = tracker.sides[seat === 0 ? 1 : 0];
    /** @type {Map<string, Own>} */
    this.byIdent = new Map();
    /** @type {Own[]} in the order of the request */
    this.team = [];
    /** @type {Mon[]} the active one first */
    this.foes = [];
    this.foeFighters = Array.from({length: TEAM}, () => new Fighter());
    this.foeStamp = new Int32Array(TEAM).fill(-1);
  }

  /** @param {Request} request */
  update(request) {
    this.updateTeam(request);
    this.updateFoes();
  }

  /** @param {Request} request */
  updateTeam(request) {
    const members = request.side.pokemon, size = Math.min(TEAM, members.length);
    if (this.team.length > size) this.team.length = size;
    for (let i = 0; i < size; i++) {
      const member = members[i], own = this.ownOf(member.ident, i);
      own.update(member, this.lexicon);
      if (request.teamPreview) own.active = false; // the first of the list is marked as active there
      if (own.changed) this.updateField(own);
      this.team[i] = own;
    }
    const lead = this.team[0], moves = request.active?.[0]?.moves;
    if (lead && moves) {
      for (const {id, pp, maxpp} of moves) {
        const at = lead.moves.findIndex(move => move.key === id);
        if (at >= 0 && maxpp) lead.pp[at] = (pp ?? 0) / maxpp;
      }
    }
  }

  /** @param {string} ident @param {number} i where it is, and mostly was before */
  ownOf(ident, i) {
    if (this.team[i]?.ident === ident) return this.team[i];
    let own = this.byIdent.get(ident);
    if (!own) {
      own = new Own(this.byIdent.size, ident);
      this.byIdent.set(ident, own);
    }
    return own;
  }

  /** What the field adds to one's own: types and boosts of the active one. @param {Own} own */
  updateField(own) {
    const {fighter} = own, shown = own.active ? this.mine.active : null;
    let [first, second] = [own.bornFirst, own.bornSecond];
    if (fighter.terastallized && own.tera) [first, second] = [own.tera, 0];
    else if (shown && shown.name === own.name) [first, second] = shown.types;
    let changed = first !== fighter.first || second !== fighter.second;
    for (let i = 0; i < fighter.boosts.length; i++) {
      const stage = shown ? shown.boosts[i] : 0;
      if (fighter.boosts[i] !== stage) {
        fighter.boosts[i] = stage;
        changed = true;
      }
    }
    if (changed) {
      fighter.first = first;
      fighter.second = second;
      own.revision++;
    }
    fighter.bornFirst = own.bornFirst;
    fighter.bornSecond = own.bornSecond;
  }

  updateFoes() {
    const {active, mons} = this.theirs;
    let count = 0;
    if (active) this.foes[count++] = active;
    for (const mon of mons) if (mon !== active && count < TEAM) this.foes[count++] = mon;
    if (this.foes.length > count) this.foes.length = count;
    for (const mon of this.foes) {
      if (mon.id >= TEAM || this.foeStamp[mon.id] === mon.revision) continue;
      const fighter = this.foeFighters[mon.id];
      fighter.level = mon.level;
      fighter.weight = mon.species.weight;
      fighter.guessStats(mon.species, this.lexicon.generation);
      fighter.boosts.set(mon.boosts);
      [fighter.first, fighter.second] = mon.types;
      [fighter.bornFirst, fighter.bornSecond] = mon.species.types;
      fighter.terastallized = mon.terastallized;
      fighter.item = mon.item;
      fighter.ability = mon.ability;
      fighter.status = mon.status;
      this.foeStamp[mon.id] = mon.revision;
    }
  }
}
