/**
 * What everybody at a battle knows, read from the public lines of its log.
 *
 * One tracker serves both seats: nothing that only one of them knows ever enters it. The log is omniscient; after
 * `|split|` comes the line for that side, then the public one, and the former is skipped.
 */

import {HANDLERS} from './events.js';
import {typeNumber} from './lexicon.js';
import {Mon, PublicSide} from './mon.js';
import {numbered} from './schema.js';

/** @typedef {import('./lexicon.js').Lexicon} Lexicon */

const STATUS = numbered('status'), ROOMS = numbered('rooms'), SIDES = numbered('sides');
const [ASLEEP, BADLY_POISONED] = ['slp', 'tox'].map(name => STATUS.get(name));
const LAYERED = 3; // the first conditions of a side pile up: spikes, toxic spikes, stealth rock

/**
 * The lines of a log that everybody is told; after `|split|` comes one for a side alone, then the public one.
 * @param {string[]} log @param {number} [from] @returns {string[]}
 */
export function publicLines(log, from = 0) {
  const lines = [];
  for (let at = from; at < log.length; at++) {
    if (log[at].startsWith('|split|')) at += 2;
    if (at < log.length) lines.push(log[at]);
  }
  return lines;
}

/** Reads the log of one battle as it grows. */
export class Tracker {
  /** @param {Lexicon} lexicon */
  constructor(lexicon) {
    this.lexicon = lexicon;
    /** @type {[PublicSide, PublicSide]} */
    this.sides = [new PublicSide(), new PublicSide()];
    this.turn = 0;
    this.weather = 0;
    this.weatherBegan = 0;
    this.terrain = 0;
    this.terrainBegan = 0;
    this.rooms = new Uint16Array(ROOMS.size); // the turn it began plus one
    this.revision = 0; // of the field: whatever moves everybody's damage figures
    this.position = 0;
  }

  /** @param {string[]} log read what was added since the last time */
  read(log) {
    for (let at = this.position; at < log.length; at++) {
      if (log[at].startsWith('|split|')) at += 2;
      if (at < log.length) this.line(log[at]);
    }
    this.position = log.length;
  }

  /** Read one line that everybody, or this player, is told; whether it means anything. @param {string} line */
  line(line) {
    if (line.charCodeAt(0) !== 124 || line.length < 4) return false;
    const end = line.indexOf('|', 1), handler = HANDLERS[end < 0 ? line.slice(1) : line.slice(1, end)];
    if (handler === undefined) return false;
    const parts = line.split('|');
    handler(this, parts);
    if (parts.length > 4 && line.includes('[from] ')) this.reveal(parts);
    return true;
  }

  /** @param {string | undefined} ident such as `p1a: Name` @returns {PublicSide} */
  side(ident) {
    return this.sides[(ident ?? '').charCodeAt(1) === 50 ? 1 : 0];
  }

  /** @param {string | undefined} ident @returns {Mon | undefined} */
  mon(ident) {
    if (ident === undefined) return undefined;
    const side = this.side(ident), name = ident.slice(ident.indexOf(': ') + 2);
    if (ident.charCodeAt(2) !== 58 && side.active !== null && side.active.name === name) return side.active;
    return side.byName.get(name);
  }

  /** Items and abilities that a line gives as its cause. @param {string[]} parts */
  reveal(parts) {
    let cause = '', holder = parts[2];
    for (let i = 3; i < parts.length; i++) {
      const part = parts[i];
      if (part.startsWith('[from] ')) cause = part.slice(7);
      else if (part.startsWith('[of] ')) holder = part.slice(5);
    }
    if (cause.startsWith('item: ') && parts[1] !== '-enditem' && parts[1] !== '-item') {
      this.hold(this.mon(holder), cause.slice(6));
    } else if (cause.startsWith('ability: ') && parts[1] !== '-ability') {
      this.setAbility(this.mon(holder), cause.slice(9));
    }
  }

  /** @param {Mon | undefined} mon @param {string} item */
  hold(mon, item) {
    const number = this.lexicon.item(item);
    if (mon && mon.item !== number) {
      mon.item = number;
      mon.revision++;
    }
  }

  /** @param {Mon | undefined} mon @param {string} ability */
  setAbility(mon, ability) {
    const number = this.lexicon.ability(ability);
    if (mon && mon.ability !== number) {
      mon.ability = number;
      mon.revision++;
    }
  }

  /** @param {Mon} mon @param {string | undefined} text such as `45/100 brn` */
  condition(mon, text) {
    if (text === undefined) return;
    const space = text.indexOf(' ');
    const health = space < 0 ? text : text.slice(0, space);
    const slash = health.indexOf('/');
    mon.hp = slash < 0 ? 0 : Number(health.slice(0, slash)) / Number(health.slice(slash + 1));
    this.setStatus(mon, space < 0 ? '' : text.slice(space + 1));
  }

  /** @param {Mon} mon @param {string} name */
  setStatus(mon, name) {
    const status = name === 'fnt' ? mon.status : STATUS.get(name) ?? 0;
    if (status !== mon.status) {
      mon.status = status;
      mon.statusTurns = 0;
      mon.revision++;
    }
  }

  /** A Pokémon comes in, by choice or not. @param {string[]} parts @param {boolean} unmasked */
  enter(parts, unmasked) {
    const ident = parts[2], details = (parts[3] ?? '').split(', ');
    const side = this.side(ident), before = side.active, name = ident.slice(ident.indexOf(': ') + 2);
    const species = this.lexicon.species(details[0]);
    const mon = side.byName.get(name) ?? side.appear(name, species);
    if (unmasked && before) {
      mon.boosts.set(before.boosts);
      mon.low = before.low;
      mon.high = before.high;
      mon.hp = before.hp;
      mon.status = before.status;
      before.hp = before.hpBefore;
      before.status = 0;
      before.revision++;
      mon.revision++;
    }
    if (before && before !== mon) before.leave();
    else if (before === mon && !unmasked) mon.leave();
    mon.become(species, true);
    for (const detail of details) {
      if (detail.charCodeAt(0) === 76 && detail.length <= 4) mon.reach(Number(detail.slice(1)));
      else if (detail.startsWith('tera:')) this.terastallize(mon, detail.slice(5));
    }
    if (!unmasked) {
      this.condition(mon, parts[4]);
      mon.hpBefore = mon.hp;
      mon.fainted = false; // where it seemed to have fainted, that was an illusion of it
    }
    side.active = mon;
  }

  /** @param {Mon} mon @param {string} type */
  terastallize(mon, type) {
    mon.tera = typeNumber(type);
    mon.terastallized = true;
    if (type !== 'Stellar') mon.types = [mon.tera, 0];
    mon.revision++;
  }

  /** @param {string} name the key of a side's condition @param {PublicSide} side @param {boolean} on */
  setCondition(side, name, on) {
    const at = SIDES.get(name);
    if (at === undefined) return;
    if (!on) side.conditions[at] = 0;
    else if (at < LAYERED) side.conditions[at] = side.conditions[at] + 1;
    else side.conditions[at] = 1;
    side.began[at] = this.turn;
    this.revision++;
  }

  /** Everything ages by a turn. @param {number} turn */
  nextTurn(turn) {
    this.turn = turn;
    for (const side of this.sides) {
      const mon = side.active;
      if (!mon) continue;
      if (mon.status === ASLEEP || mon.status === BADLY_POISONED) mon.statusTurns++;
      mon.calm();
    }
  }
}
