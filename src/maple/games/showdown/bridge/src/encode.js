/**
 * Writes what one seat sees, from its own requests and the public log alone.
 *
 * The view is kept from decision to decision; what sits on the bench is written only when something about it has changed. It
 * mostly has not, and what is not touched does not push the simulator's own data out of the processor's cache.
 */

import {FIRST_SWITCH, gimmickOf} from './actions.js';
import {byte, Figures} from './figures.js';
import {Gimmicks} from './gimmick.js';
import {Known, TEAM} from './known.js';
import {typeNumber} from './lexicon.js';
import {numbered, place, VIEW_BYTES} from './schema.js';

/**
 * @typedef {import('./damage.js').DamageModel} DamageModel
 * @typedef {import('./lexicon.js').Lexicon} Lexicon
 * @typedef {import('./lexicon.js').Move} Move
 * @typedef {import('./simulator.js').Request} Request
 * @typedef {import('./mon.js').Mon} Mon
 * @typedef {import('./own.js').Own} Own
 * @typedef {import('./damage.js').Fighter} Fighter
 * @typedef {import('./tracker.js').Tracker} Tracker
 */

const TURN = place('turn'), SIDE = place('side'), POKEMON = place('pokemon'), MOVE = place('move');
const SWITCH = place('switch'), DAMAGE = place('damage');
const REQUEST = numbered('request');
const ROOMS = numbered('rooms'), SIDES = numbered('sides');
const MOVES = 4;
const TRICK_ROOM = ROOMS.get('trickroom') ?? 0;
const [SPIKES, ROCKS] = [SIDES.get('spikes') ?? 0, SIDES.get('stealthrock') ?? 0];
const SPIKES_TAKE = [0, 1 / 8, 1 / 6, 1 / 4];
const LAYERS = 3;
const NOBODY = -1, ANYBODY = -2; // in a row of the view: empty; not known any more
const KNOWN = 1, ACTIVE = 2, FAINTED = 4, MARKED = 8; // marked: mine, picked in team preview; theirs, only seen there

/** Encodes one seat of one battle. */
export class SeatEncoder {
  /** @param {Lexicon} lexicon @param {DamageModel} model @param {Tracker} tracker @param {0 | 1} seat */
  constructor(lexicon, model, tracker, seat) {
    this.lexicon = lexicon;
    this.model = model;
    this.gimmicks = new Gimmicks(lexicon, model);
    this.tracker = tracker;
    this.known = new Known(lexicon, tracker, seat);
    const {mine, theirs, team, foes, foeFighters} = this.known;
    this.mine = mine;
    this.theirs = theirs;
    this.team = team;
    this.foes = foes;
    this.foeFighters = foeFighters;
    this.boots = lexicon.item('heavydutyboots');
    this.figures = new Figures(model, tracker, seat);
    const view = new ArrayBuffer(VIEW_BYTES);
    this.u8 = new Uint8Array(view); // the view as it was last written
    this.u16 = new Uint16Array(view);
    this.inRow = new Int32Array(2 * TEAM).fill(NOBODY); // whose row each is, by their ids
    this.onBench = new Uint8Array(TEAM); // whether one of theirs was, when its row was written; what it was then
    this.foeRevision = new Int32Array(TEAM);
    this.foeHp = new Float64Array(TEAM);
    this.turns = new Int32Array(2 * TEAM); // of a status, in each row
    this.fainted = 0; // a bit for each row
    this.moved = true; // whether rows changed places, or somebody fainted or came back
    this.previewed = false;
    this.revision = -1; // of everything that damage figures are made of, when they were written
  }

  /** Write every row anew the next time. */
  forget() {
    this.inRow.fill(ANYBODY);
  }

  /**
   * Write the view at byte `at`.
   * @param {Request} request @param {number} mask @param {Uint8Array} into @param {number} at
   */
  encode(request, mask, into, at) {
    if (request.teamPreview || this.previewed) this.forget(); // marks come and go there
    this.previewed = !!request.teamPreview;
    this.known.update(request);
    this.writeTurn(request, mask);
    this.writeSide(this.mine, SIDE.at);
    this.writeSide(this.theirs, SIDE.at + SIDE.stride);
    this.writeRows(request, mask);
    this.writeDamage();
    this.writeMoves(request);
    this.writeSwitches();
    into.set(this.u8, at);
  }

  /** @param {Request} request @param {number} mask */
  writeTurn(request, mask) {
    const {tracker, u8, u16} = this, base = TURN.at, {field} = TURN;
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

  /** @param {import('./mon.js').PublicSide} side @param {number} base */
  writeSide(side, base) {
    const {field} = SIDE, {u8} = this;
    for (let i = 0; i < side.conditions.length; i++) {
      const layers = side.conditions[i];
      const turns = this.tracker.turn - side.began[i] + 1;
      u8[base + field.conditions + i] = layers === 0 || i < LAYERS ? layers : Math.min(255, turns);
    }
    u8[base + field.remaining] = side.size - side.fainted;
    u8[base + field.seen] = side.appeared;
    u8[base + field.spent] = side.spent ? 1 : 0;
  }

  /** The rows of both teams, where they have changed. @param {Request} request @param {number} mask */
  writeRows(request, mask) {
    const {team, foes, inRow, u8} = this;
    let fainted = 0;
    this.moved = false;
    for (let i = 0; i < team.length; i++) {
      const own = team[i], turns = own.shown?.statusTurns ?? this.turnsOf(own);
      if (own.fainted) fainted |= 1 << i;
      if (inRow[i] === own.id && !own.changed && this.turns[i] === turns) continue;
      const picked = !!request.teamPreview && !(mask >> (FIRST_SWITCH + i) & 1);
      this.writeOwn(own, picked, turns, this.take(i, own.id, turns));
    }
    for (let j = 0; j < foes.length; j++) {
      const foe = foes[j], active = foe === this.theirs.active;
      if (foe.fainted) fainted |= 1 << (TEAM + j);
      if (inRow[TEAM + j] === foe.id && !active && this.isAsWritten(foe, j)) continue;
      this.writeFoe(foe, this.take(TEAM + j, foe.id, foe.statusTurns));
      this.onBench[j] = active ? 0 : 1;
      this.foeRevision[j] = foe.revision;
      this.foeHp[j] = foe.hp;
    }
    for (let row = team.length; row < TEAM; row++) if (inRow[row] !== NOBODY) this.take(row, NOBODY, 0);
    for (let row = TEAM + foes.length; row < 2 * TEAM; row++) if (inRow[row] !== NOBODY) this.take(row, NOBODY, 0);
    if (fainted !== this.fainted) this.moved = true;
    this.fainted = fainted;
  }

  /** The turns of its status, from when it has appeared. @param {Own} own */
  turnsOf(own) {
    own.shown = this.mine.byName.get(own.name);
    return own.shown?.statusTurns ?? 0;
  }

  /** A row is somebody's from now on, and empty so far; where it begins. @param {number} row @param {number} id @param {number} turns */
  take(row, id, turns) {
    const base = POKEMON.at + row * POKEMON.stride;
    if (this.inRow[row] !== id) this.moved = true;
    this.inRow[row] = id;
    this.turns[row] = turns;
    this.u8.fill(0, base, base + POKEMON.stride);
    return base;
  }

  /** Whether one of theirs is as it was when its row was written, on the bench. @param {Mon} foe @param {number} j */
  isAsWritten(foe, j) {
    return this.onBench[j] === 1 && foe.id < TEAM && this.foeRevision[j] === foe.revision && this.foeHp[j] === foe.hp &&
      this.turns[TEAM + j] === foe.statusTurns;
  }

  /** @param {Own} own @param {boolean} picked @param {number} turns @param {number} base */
  writeOwn(own, picked, turns, base) {
    const {field} = POKEMON, {u8} = this, shown = own.active ? this.mine.active : null;
    this.writeFighter(own.fighter, own.species, own.moves, shown, base);
    u8[base + field.tera] = own.tera;
    u8[base + field.hp] = own.fainted ? 0 : Math.max(1, byte(own.hp, 255));
    u8[base + field.flags] = KNOWN | (own.active ? ACTIVE : 0) | (own.fainted ? FAINTED : 0) | (picked ? MARKED : 0);
    u8[base + field.status_turns] = turns;
    for (let i = 0; i < own.moves.length; i++) u8[base + field.pp + i] = byte(own.pp[i], 255);
  }

  /** @param {Mon} mon @param {number} base */
  writeFoe(mon, base) {
    const {field} = POKEMON, {u8} = this, active = mon === this.theirs.active;
    const fighter = this.foeFighters[Math.min(mon.id, TEAM - 1)];
    this.writeFighter(fighter, mon.species.id, mon.moves, active ? mon : null, base);
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
   * @param {Fighter} fighter @param {number} species @param {Move[]} moves @param {Mon | null} shown @param {number} base
   */
  writeFighter(fighter, species, moves, shown, base) {
    const {field} = POKEMON, {u8, u16} = this, at = base >> 1;
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

  writeDamage() {
    const {team, foes, figures, u8, moved} = this;
    let revision = this.tracker.revision; // each only ever grows, and so does their sum
    for (const own of team) revision += own.revision;
    for (const foe of foes) revision += foe.revision;
    if (!moved && revision === this.revision) return;
    this.revision = revision;
    if (moved) u8.fill(0, DAMAGE.at, DAMAGE.at + DAMAGE.stride);
    for (let i = 0; i < team.length; i++) {
      const own = team[i];
      if (own.fainted) continue;
      for (let j = 0; j < foes.length; j++) {
        const foe = foes[j];
        if (foe.fainted || foe.id >= TEAM) continue;
        if (figures.update(own, foe, this.foeFighters[foe.id]) || moved) figures.write(u8, own, i, foe, j);
      }
    }
  }

  /** @param {Request} request */
  writeMoves(request) {
    const active = request.active?.[0], own = this.team[0], foe = this.theirs.active, {u8, u16} = this;
    u8.fill(0, MOVE.at, MOVE.at + MOVES * MOVE.stride);
    if (!active || !own) return;
    const {field} = MOVE, {moves} = active;
    const fighter = foe && foe.id < TEAM ? this.foeFighters[foe.id] : null;
    for (let i = 0; i < moves.length && i < MOVES; i++) {
      const {id, pp, maxpp} = moves[i];
      // The list of one's own moves says more than the offer: hiddenpowerfire, return102.
      const move = own.moveIds[i]?.startsWith(id) ? own.moves[i] : this.lexicon.move(id), base = MOVE.at + i * MOVE.stride;
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

  writeSwitches() {
    const {field} = SWITCH, {u8} = this, foe = this.theirs.active;
    u8.fill(0, SWITCH.at, SWITCH.at + TEAM * SWITCH.stride);
    for (let i = 0; i < this.team.length; i++) {
      const own = this.team[i], base = SWITCH.at + i * SWITCH.stride;
      if (own.fainted) continue;
      if (foe && foe.id < TEAM) {
        u8[base + field.dealt] = byte(this.figures.best(own, foe) / Math.max(foe.hp, 0.01), 128);
        u8[base + field.taken] = byte(this.figures.worst(own, foe) / Math.max(own.hp, 0.01), 128);
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
    for (const foe of this.foes) sum += this.figures.best(own, foe);
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
