/** One place where battles are played one after the other. */

import {accelerate} from './accelerator.js';
import {Account, OUTCOME, SEATS} from './account.js';
import {choose, openActions} from './actions.js';
import {DamageModel} from './damage.js';
import {SeatEncoder} from './encode.js';
import {ENDED_BYTES, ROW_BYTES} from './frame.js';
import {Lexicon} from './lexicon.js';
import {DEAL, key, simulatorSeed} from './random.js';
import {schema, schemaHash, VIEW_BYTES} from './schema.js';
import {findFormat, TeamBank} from './teams.js';
import {Tracker} from './tracker.js';

/**
 * @typedef {import('./simulator.js').Battle} Battle
 * @typedef {import('./simulator.js').Request} Request
 * @typedef {import('./simulator.js').Side} Side
 * @typedef {import('./simulator.js').Simulator} Simulator
 * @typedef {{format: string, seed: string, tablesPerDeal: number, maxTurns: number, teamPool: number,
 *   teams: import('./teams.js').TeamFile[], accelerate: boolean, record?: boolean}} Config
 */

const NAMES = ['First', 'Second'];
const MOST_PASSES = 8; // in a row, of seats with nothing to decide

/** What all tables of a process share: the format, its data and its teams. */
export class Rules {
  /** @param {Simulator} simulator @param {Config} config */
  constructor(simulator, config) {
    const {Dex} = simulator, format = findFormat(simulator, config.format);
    this.config = config;
    this.version = simulator.version;
    this.seed = BigInt(config.seed);
    this.lexicon = new Lexicon(Dex, Dex.forFormat(format));
    this.model = new DamageModel(this.lexicon);
    const fast = config.accelerate ? accelerate(simulator, format.id) : {Battle: simulator.Battle, reason: 'it is off'};
    this.Battle = fast.Battle;
    this.notAccelerated = fast.reason;
    this.format = format.id;
    this.teams = new TeamBank(simulator, format, config.teams, this.seed, config.teamPool);
  }

  /** What a process says of itself once it has understood its rules. */
  introduction() {
    return {
      simulator: this.version, node: process.version, schema: schemaHash, view: VIEW_BYTES, row: ROW_BYTES, ended: ENDED_BYTES,
      notAccelerated: this.notAccelerated,
    };
  }
}

/** What stands for a battle until it has begun. @param {string[]} inputLog what begins it @returns {Battle} */
function notBegun(inputLog) {
  const nothing = {log: [], inputLog, sides: [], ended: false, winner: '', turn: 0, destroy() {}};
  return /** @type {Battle} */ (/** @type {unknown} */ (nothing));
}

/** A battle, which begins when it is first brought up to date, and what its two seats see of it. */
export class Table {
  /** @param {Rules} rules @param {number} number @param {number} game how many games were played here before */
  constructor(rules, number, game) {
    this.rules = rules;
    this.number = number;
    this.game = game;
    this.begun = false;
    this.battle = notBegun([]);
    this.tracker = new Tracker(rules.lexicon);
    this.encoders = [
      new SeatEncoder(rules.lexicon, rules.model, this.tracker, 0),
      new SeatEncoder(rules.lexicon, rules.model, this.tracker, 1),
    ];
    this.decisions = [0, 0];
    this.masks = [0, 0];
    this.refused = [0, 0];
    /** @type {[number[], number[]]} */
    this.picked = [[], []];
    this.accounts = [new Account(), new Account()];
    this.outcome = OUTCOME.playing;
    this.refusals = 0;
    /** @type {import('./repeat.js').Anomaly[]} */
    this.anomalies = [];
  }

  /** Draw the teams and begin. */
  begin() {
    const {number, game, rules} = this, {tablesPerDeal} = rules.config;
    const deal = Math.floor(number / tablesPerDeal), swapped = number % tablesPerDeal % 2;
    const seed = simulatorSeed(key(rules.seed, [DEAL, deal, game, 0, 0, 0]));
    const [first, second] = [0, 1].map(seat => rules.teams.draw(deal, game, seat ^ swapped));
    const start = {formatid: rules.format, seed, p1: {name: NAMES[0], team: first}, p2: {name: NAMES[1], team: second}};
    this.battle = notBegun([`>start ${JSON.stringify(start)}`]);
    this.battle = new rules.Battle(start);
    this.standing();
    for (const account of this.accounts) account.told.set(account.standing);
    this.begun = true;
  }

  /** Let go of a finished battle's memory. */
  end() {
    this.battle.destroy();
  }

  /** @param {number} seat @returns {Side} */
  side(seat) {
    return this.battle.sides[seat];
  }

  /** Find out which seats wait for a decision; one with nothing to decide is passed over. */
  update() {
    if (!this.begun) this.begin();
    let idle = 0;
    for (let round = 0; round < MOST_PASSES && idle >= 0 && !this.battle.ended; round++) {
      idle = this.readMasks();
      if (idle >= 0) this.battle.choose(this.side(idle).id, 'default');
    }
    if (idle >= 0 && !this.battle.ended) throw new Error('nobody has anything to decide, and the battle does not end');
    if (this.battle.ended) this.outcome = OUTCOME.terminated;
    else if (this.battle.turn > this.rules.config.maxTurns) this.outcome = OUTCOME.truncated;
    this.standing();
  }

  /** Write the masks; returns a seat that has to choose but has nothing to choose from, or -1. */
  readMasks() {
    let idle = -1;
    for (let seat = 0; seat < SEATS; seat++) {
      const side = this.side(seat), done = side.isChoiceDone();
      this.masks[seat] = done ? 0 : openActions(side.activeRequest, this.picked[seat]) & ~this.refused[seat];
      if (!done && !this.masks[seat]) idle = seat;
    }
    return idle;
  }

  /** Play a seat's action. @param {number} seat @param {number} action */
  play(seat, action) {
    const side = this.side(seat), request = /** @type {Request} */ (side.activeRequest);
    this.decisions[seat]++;
    const choice = choose(request, this.picked[seat], action);
    if (choice === '') return;
    if (this.battle.choose(side.id, choice)) {
      this.refused[seat] = 0;
    } else {
      this.refuse(seat, side, choice, action);
    }
  }

  /** The simulator did not take a choice: it is asked again, without it. @param {number} seat @param {Side} side @param {string} choice @param {number} action */
  refuse(seat, side, choice, action) {
    const {error} = side.choice;
    this.refusals++;
    this.refused[seat] |= 1 << action;
    // Trapped or disabled by something that could not be known comes with a corrected request and is part of the game;
    // anything else is a mask that was wrong.
    if (!side.activeRequest?.update) this.remember('refused', seat, choice, error);
  }

  /** Keep what repeats an anomaly. @param {string} kind @param {number} seat @param {string} choice @param {string} error */
  remember(kind, seat, choice, error) {
    const {format, version, notAccelerated} = this.rules, input = [...this.battle.inputLog];
    this.anomalies.push({
      kind, format, simulator: version, accelerated: notAccelerated === '', table: this.number, game: this.game, seat, choice, error, input,
    });
  }

  /** Bring the seats' accounts up to date. */
  standing() {
    const totals = [0, 1].map(seat => {
      let hp = 0, fainted = 0, ill = 0;
      for (const {hp: left, maxhp, fainted: gone, status} of this.side(seat).pokemon) {
        hp += left / maxhp;
        if (gone) fainted++;
        else if (status) ill++;
      }
      return {hp, fainted, ill};
    });
    const winner = this.battle.ended ? this.winner() : -1;
    for (let seat = 0; seat < SEATS; seat++) {
      const won = winner < 0 ? 0 : winner === seat ? 1 : -1;
      this.accounts[seat].update(totals[seat], totals[1 - seat], this.battle.turn, won);
    }
  }

  /** How many turns it has had. */
  get turns() {
    return this.battle.turn;
  }

  /** The seat that won, -1 for none. */
  winner() {
    return NAMES.indexOf(this.battle.winner);
  }

  /** @param {number} seat */
  account(seat) {
    return this.accounts[seat];
  }

  /** Write a seat's view. @param {number} seat @param {Uint8Array} u8 @param {number} at */
  write(seat, u8, at) {
    const request = this.side(seat).activeRequest;
    if (!request) return;
    this.tracker.read(this.battle.log);
    this.encoders[seat].encode(request, this.masks[seat], u8, at);
  }
}

if (schema.actions !== 14) throw new Error('schema.json and the actions disagree');
