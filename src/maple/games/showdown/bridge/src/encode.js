/** Writes what one seat sees, from its own requests and the public log alone. */

import {FIRST_SWITCH, gimmickOf} from './actions.js';
import {Fighter} from './damage.js';
import {Gimmicks} from './gimmick.js';
import {typeNumber} from './lexicon.js';
import {Own} from './own.js';
import {numbered, place} from './schema.js';

/**
 * @typedef {import('./damage.js').DamageModel} DamageModel
 * @typedef {import('./lexicon.js').Lexicon} Lexicon
 * @typedef {import('./lexicon.js').Move} Move
 * @typedef {import('./simulator.js').Request} Request
 * @typedef {import('./simulator.js').RequestMember} RequestMember
 * @typedef {import('./mon.js').Mon} Mon
 * @typedef {import('./tracker.js').Tracker} Tracker
 */

const TURN = place('turn'), SIDE = place('side'), POKEMON = place('pokemon'), MOVE = place('move');
const SWITCH = place('switch'), DAMAGE = place('damage');
const REQUEST = numbered('request');
const ROOMS = numbered('rooms'), SIDES = numbered('sides');
const TEAM = 6, MOVES = 4, PAIRS = TEAM * TEAM * MOVES;
const DEALT = DAMAGE.field.dealt + DAMAGE.at;
const TAKEN = DAMAGE.field.taken + DAMAGE.at;
const TRICK_ROOM = ROOMS.get('trickroom') ?? 0;
const [SPIKES, ROCKS] = [SIDES.get('spikes') ?? 0, SIDES.get('stealthrock') ?? 0];
const SPIKES_TAKE = [0, 1 / 8, 1 / 6, 1 / 4];
const LAYERS = 3;
const KNOWN = 1, ACTIVE = 2, FAINTED = 4, MARKED = 8; // marked: mine, picked in team preview; theirs, only seen there

/** @param {number} share @param {number} scale */
function byte(share, scale) {
  return Math.min(255, Math.round(share * scale));
}

/** Encodes one seat of one battle. */
export class SeatEncoder {
  /** @param {Lexicon} lexicon @param {DamageModel} model @param {Tracker} tracker @param {0 | 1} seat */
  constructor(lexicon, model, tracker, seat) {
    this.lexicon = lexicon;
    this.model = model;
    this.gimmicks = new Gimmicks(lexicon, model);
    this.tracker = tracker;
    this.mine = tracker.sides[seat];
    this.theirs = tracker.sides[seat === 0 ? 1 : 0];
    /** @type {Map<string, Own>} */
    this.byIdent = new Map();
    /** @type {Own[]} in the order of the request */
    this.team = [];
    /** @type {Mon[]} the active one first */
    this.foes = [];
    this.ownStamp = new Int32Array(TEAM);
    this.foeFighters = Array.from({length: TEAM}, () => new Fighter());
    this.foeStamp = new Int32Array(TEAM).fill(-1);
    this.boots = lexicon.item('heavydutyboots');
    this.dealt = new Float32Array(PAIRS); // own × move × foe, by their ids
    this.taken = new Float32Array(PAIRS); // foe × move × own, by their ids
    this.dealtBytes = new Uint8Array(PAIRS); // the same as they are written
    this.takenBytes = new Uint8Array(PAIRS);
    this.pairOwn = new Int32Array(TEAM * TEAM).fill(-1);
    this.pairFoe = new Int32Array(TEAM * TEAM).fill(-1);
    this.pairField = new Int32Array(TEAM * TEAM).fill(-1);
  }

  /**
   * Write the view at byte `at`.
   * @param {Request} request @param {number} mask @param {Uint8Array} u8 @param {Uint16Array} u16 @param {number} at
   */
  encode(request, mask, u8, u16, at) {
    this.updateTeam(request);
    this.updateFoes();
    this.writeTurn(request, mask, u8, u16, at);
    this.writeSide(this.mine, u8, at + SIDE.at);
    this.writeSide(this.theirs, u8, at + SIDE.at + SIDE.stride);
    for (let i = 0; i < this.team.length; i++) {
      const picked = !!request.teamPreview && !(mask >> (FIRST_SWITCH + i) & 1);
      this.writeOwn(this.team[i], picked, u8, u16, at + POKEMON.at + i * POKEMON.stride);
    }
    for (let i = 0; i < this.foes.length; i++) {
      this.writeFoe(this.foes[i], u8, u16, at + POKEMON.at + (TEAM + i) * POKEMON.stride);
    }
    this.writeDamage(u8, at);
    this.writeMoves(request, u8, u16, at);
    this.writeSwitches(u8, at);
  }

  /** @param {Request} request */
  updateTeam(request) {
    const members = request.side.pokemon;
    this.team.length = 0;
    for (let i = 0; i < members.length && i < TEAM; i++) {
      const member = members[i];
      let own = this.byIdent.get(member.ident);
      if (!own) {
        own = new Own(this.byIdent.size);
        this.byIdent.set(member.ident, own);
      }
      own.update(member, this.lexicon);
      if (request.teamPreview) own.active = false; // the first of the list is marked as active there
      this.updateField(own);
      this.team.push(own);
    }
    const lead = this.team[0], moves = request.active?.[0]?.moves;
    if (lead && moves) {
      for (const {id, pp, maxpp} of moves) {
        const at = lead.moves.findIndex(move => move.key === id);
        if (at >= 0 && maxpp) lead.pp[at] = (pp ?? 0) / maxpp;
      }
    }
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
    this.foes.length = 0;
    if (active) this.foes.push(active);
    for (const mon of mons) if (mon !== active && this.foes.length < TEAM) this.foes.push(mon);
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

  /** @param {Request} request @param {number} mask @param {Uint8Array} u8 @param {Uint16Array} u16 @param {number} at */
  writeTurn(request, mask, u8, u16, at) {
    const {tracker} = this, base = at + TURN.at, field = TURN.field;
    const active = request.active?.[0];
    const kind = request.teamPreview ? 'preview' : request.forceSwitch ? 'switch' : 'move';
    u16[(base + field.number) >> 1] = Math.min(1000, tracker.turn);
    u16[(base + field.mask) >> 1] = mask;
    u8[base + field.request] = REQUEST.get(kind) ?? 0;
    u8[base + field.gimmick] = gimmickOf(active);
    u8[base + field.trapped] = active?.trapped ? 1 : active?.maybeTrapped ? 2 : 0;
    u8[base + field.generation] = this.lexicon.generation;
    u8[base + field.weather] = tracker.weather;
    u8[base + field.weather_turns] = tracker.weather ? Math.min(255, tracker.turn - tracker.weatherBegan) : 0;
    u8[base + field.terrain] = tracker.terrain;
    u8[base + field.terrain_turns] = tracker.terrain ? Math.min(255, tracker.turn - tracker.terrainBegan) : 0;
    for (let i = 0; i < tracker.rooms.length; i++) {
      const began = tracker.rooms[i];
      u8[base + field.rooms + i] = began ? Math.min(255, tracker.turn - began + 2) : 0;
    }
    u8[base + field.faster] = this.team[0] ? this.faster(this.team[0]) : 0;
  }

  /** @param {Own} own 1 if it moves before their active by speed, 2 if not, 0 unknown */
  faster(own) {
    const foe = this.theirs.active;
    if (!foe || foe.id >= TEAM) return 0;
    const fighter = this.foeFighters[foe.id];
    const ahead = this.model.speed(own.fighter, this.mine) > this.model.speed(fighter, this.theirs);
    return ahead !== !!this.tracker.rooms[TRICK_ROOM] ? 1 : 2;
  }

  /** @param {import('./mon.js').PublicSide} side @param {Uint8Array} u8 @param {number} base */
  writeSide(side, u8, base) {
    const {field} = SIDE;
    for (let i = 0; i < side.conditions.length; i++) {
      const layers = side.conditions[i];
      const turns = this.tracker.turn - side.began[i] + 1;
      u8[base + field.conditions + i] = layers === 0 || i < LAYERS ? layers : Math.min(255, turns);
    }
    u8[base + field.remaining] = side.size - side.fainted;
    u8[base + field.seen] = side.appeared;
    u8[base + field.spent] = side.spent ? 1 : 0;
  }

  /** @param {Own} own @param {boolean} picked @param {Uint8Array} u8 @param {Uint16Array} u16 @param {number} base */
  writeOwn(own, picked, u8, u16, base) {
    const {field} = POKEMON, shown = own.active ? this.mine.active : null;
    this.writeFighter(own.fighter, own.species, own.moves, shown, u8, u16, base);
    u8[base + field.tera] = own.tera;
    u8[base + field.hp] = own.fainted ? 0 : Math.max(1, byte(own.hp, 255));
    u8[base + field.flags] = KNOWN | (own.active ? ACTIVE : 0) | (own.fainted ? FAINTED : 0) | (picked ? MARKED : 0);
    u8[base + field.status_turns] = this.mine.byName.get(own.name)?.statusTurns ?? 0;
    for (let i = 0; i < own.moves.length; i++) u8[base + field.pp + i] = byte(own.pp[i], 255);
  }

  /** @param {Mon} mon @param {Uint8Array} u8 @param {Uint16Array} u16 @param {number} base */
  writeFoe(mon, u8, u16, base) {
    const {field} = POKEMON, active = mon === this.theirs.active;
    const fighter = this.foeFighters[Math.min(mon.id, TEAM - 1)];
    this.writeFighter(fighter, mon.species.id, mon.moves, active ? mon : null, u8, u16, base);
    u8[base + field.tera] = mon.tera;
    u8[base + field.hp] = mon.fainted ? 0 : Math.max(1, byte(mon.hp, 255));
    u8[base + field.flags] = KNOWN | (active ? ACTIVE : 0) | (mon.fainted ? FAINTED : 0) | (mon.name === '' ? MARKED : 0);
    u8[base + field.status_turns] = mon.statusTurns;
    for (let i = 0; i < mon.moves.length; i++) {
      const left = 1 - mon.used[i] / Math.max(1, mon.moves[i].pp);
      u8[base + field.pp + i] = byte(Math.max(0, left), 255);
    }
  }

  /**
   * @param {Fighter} fighter @param {number} species @param {Move[]} moves @param {Mon | null} shown
   * @param {Uint8Array} u8 @param {Uint16Array} u16 @param {number} base
   */
  writeFighter(fighter, species, moves, shown, u8, u16, base) {
    const {field} = POKEMON, at = base >> 1;
    u16[at + (field.species >> 1)] = species;
    u16[at + (field.item >> 1)] = fighter.item;
    u16[at + (field.ability >> 1)] = fighter.ability;
    for (let i = 0; i < moves.length; i++) u16[at + (field.moves >> 1) + i] = moves[i].id;
    for (let i = 0; i < 6; i++) u16[at + (field.stats >> 1) + i] = fighter.stats[i];
    if (shown) {
      u16[at + (field.volatiles >> 1)] = shown.low & 65535;
      u16[at + (field.volatiles >> 1) + 1] = shown.low >>> 16;
      u16[at + (field.volatiles >> 1) + 2] = shown.high & 65535;
      u16[at + (field.volatiles >> 1) + 3] = shown.high >>> 16;
    }
    u8[base + field.types] = fighter.first;
    u8[base + field.types + 1] = fighter.second;
    u8[base + field.terastallized] = fighter.terastallized ? 1 : 0;
    u8[base + field.status] = fighter.status;
    u8[base + field.level] = fighter.level;
    for (let i = 0; i < fighter.boosts.length; i++) {
      u8[base + field.boosts + i] = 6 + fighter.boosts[i];
    }
  }

  /** Bring the figures of one pair up to date. @param {Own} own @param {Mon} foe */
  updatePair(own, foe) {
    const pair = own.id * TEAM + foe.id, field = this.tracker.revision;
    if (this.pairOwn[pair] === own.revision && this.pairFoe[pair] === foe.revision && this.pairField[pair] === field) return;
    const fighter = this.foeFighters[foe.id];
    for (let m = 0; m < own.moves.length; m++) {
      const at = (own.id * MOVES + m) * TEAM + foe.id;
      this.dealt[at] = this.model.share(own.fighter, fighter, own.moves[m], this.tracker, this.theirs);
      this.dealtBytes[at] = byte(this.dealt[at], 128);
    }
    for (let m = 0; m < foe.moves.length; m++) {
      const at = (foe.id * MOVES + m) * TEAM + own.id;
      this.taken[at] = this.model.share(fighter, own.fighter, foe.moves[m], this.tracker, this.mine);
      this.takenBytes[at] = byte(this.taken[at], 128);
    }
    this.pairOwn[pair] = own.revision;
    this.pairFoe[pair] = foe.revision;
    this.pairField[pair] = field;
  }

  /** @param {Uint8Array} u8 @param {number} at */
  writeDamage(u8, at) {
    const {team, foes, dealtBytes, takenBytes} = this;
    for (let i = 0; i < team.length; i++) {
      const own = team[i];
      if (own.fainted) continue;
      for (let j = 0; j < foes.length; j++) {
        const foe = foes[j];
        if (foe.fainted || foe.id >= TEAM) continue;
        this.updatePair(own, foe);
        for (let m = 0; m < MOVES; m++) {
          u8[at + DEALT + (i * MOVES + m) * TEAM + j] = dealtBytes[(own.id * MOVES + m) * TEAM + foe.id];
          u8[at + TAKEN + (j * MOVES + m) * TEAM + i] = takenBytes[(foe.id * MOVES + m) * TEAM + own.id];
        }
      }
    }
  }

  /** @param {Request} request @param {Uint8Array} u8 @param {Uint16Array} u16 @param {number} at */
  writeMoves(request, u8, u16, at) {
    const active = request.active?.[0], own = this.team[0], foe = this.theirs.active;
    if (!active || !own) return;
    const {field} = MOVE, {moves} = active;
    const fighter = foe && foe.id < TEAM ? this.foeFighters[foe.id] : null;
    for (let i = 0; i < moves.length && i < MOVES; i++) {
      const {id, pp, maxpp} = moves[i];
      // The list of one's own moves says more than the offer: hiddenpowerfire, return102.
      const move = own.moveIds[i]?.startsWith(id) ? own.moves[i] : this.lexicon.move(id), base = at + MOVE.at + i * MOVE.stride;
      u16[(base + field.move) >> 1] = move.id;
      u16[(base + field.power) >> 1] = move.power;
      u8[base + field.type] = move.type;
      u8[base + field.category] = move.category;
      u8[base + field.accuracy] = move.accuracy;
      u8[base + field.priority] = 8 + move.priority;
      u8[base + field.pp] = maxpp ? byte((pp ?? 0) / maxpp, 255) : 255;
      if (!fighter || !foe) continue;
      const effect = this.model.effectiveness(own.fighter, fighter, move);
      u8[base + field.effectiveness] = effect === 0 ? 0 : Math.max(1, Math.min(5, 3 + Math.round(Math.log2(effect))));
      const [plain, special] = this.gimmicks.shares(own, fighter, move, active, i, this.tracker, this.theirs);
      const left = Math.max(foe.hp, 0.01);
      u8[base + field.damage] = byte(plain / left, 128);
      u8[base + field.gimmick_damage] = byte(special / left, 128);
    }
  }

  /** @param {Uint8Array} u8 @param {number} at */
  writeSwitches(u8, at) {
    const {field} = SWITCH, foe = this.theirs.active;
    for (let i = 0; i < this.team.length; i++) {
      const own = this.team[i], base = at + SWITCH.at + i * SWITCH.stride;
      if (own.fainted) continue;
      if (foe && foe.id < TEAM) {
        let best = 0, worst = 0;
        for (let m = 0; m < MOVES; m++) {
          best = Math.max(best, this.dealt[(own.id * MOVES + m) * TEAM + foe.id]);
          worst = Math.max(worst, this.taken[(foe.id * MOVES + m) * TEAM + own.id]);
        }
        u8[base + field.dealt] = byte(best / Math.max(foe.hp, 0.01), 128);
        u8[base + field.taken] = byte(worst / Math.max(own.hp, 0.01), 128);
        u8[base + field.faster] = this.faster(own);
      } else if (!foe) {
        u8[base + field.dealt] = byte(this.previewDamage(own), 128);
      }
      u8[base + field.entry] = byte(this.entryCost(own), 255);
    }
  }

  /** The best expected damage to each of their team, on average: what there is to go by in team preview. @param {Own} own */
  previewDamage(own) {
    let sum = 0;
    for (const foe of this.foes) {
      let best = 0;
      for (let m = 0; m < MOVES; m++) best = Math.max(best, this.dealt[(own.id * MOVES + m) * TEAM + foe.id]);
      sum += best;
    }
    return sum / Math.max(1, this.foes.length);
  }

  /** @param {Own} own the share of HP that entry hazards take */
  entryCost(own) {
    const {conditions} = this.mine, {chart, typeCount} = this.lexicon, {fighter} = own;
    if (fighter.item === this.boots) return 0;
    let cost = 0;
    if (conditions[ROCKS]) {
      const row = ROCK * typeCount;
      const second = fighter.second ? chart[row + fighter.second] : 1;
      cost += chart[row + fighter.first] * second / 8;
    }
    if (conditions[SPIKES] && fighter.first !== FLYING && fighter.second !== FLYING) {
      cost += SPIKES_TAKE[conditions[SPIKES]] ?? 0.25;
    }
    return cost;
  }
}

const ROCK = typeNumber('Rock'), FLYING = typeNumber('Flying');
