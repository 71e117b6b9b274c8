/** How far the closed form of damage is from what the simulator itself would deal, over battles of random play. */

import {OUTCOME} from '../src/account.js';
import {pick, Stream} from '../src/random.js';
import {Table} from '../src/table.js';
import {VIEW_BYTES} from '../src/schema.js';
import {makeRules, simulator} from './simulator.js';

/**
 * A move on offer: the shares of the target's full HP that it takes, by the simulator, by the closed form with both Pokémon
 * known, and by the closed form with what the seat knows.
 * @typedef {{move: string, user: string, target: string, real: number, form: number, seen: number}} Sample
 */

const EVERY = 5; // decisions between two samples

/**
 * What the simulator deals with the mean roll and no luck, in a copy of the battle.
 * @param {any} battle @param {number} seat @param {string} id @param {(actions: any, source: any, move: any) => any} [change] what a gimmick makes of the move
 */
export function dealt(battle, seat, id, change = (_actions, _source, move) => move) {
  const copy = /** @type {any} */ (simulator.Battle).fromJSON(JSON.stringify(battle));
  const source = copy.sides[seat].active[0], target = copy.sides[1 - seat].active[0];
  const move = change(copy.actions, source, copy.dex.getActiveMove(id));
  copy.randomizer = (/** @type {number} */ damage) => damage * 0.925;
  copy.randomChance = () => false;
  copy.random = (/** @type {number} */ from, /** @type {number | undefined} */ to) => (to ? from + to - 1 >> 1 : from - 1); // older rolls
  copy.setActiveMove(move, source, target);
  for (const event of ['ModifyType', 'ModifyMove']) copy.singleEvent(event, move, null, source, target, move, move);
  for (const event of ['ModifyType', 'ModifyMove']) copy.runEvent(event, source, target, move, move);
  const open = copy.singleEvent('TryHit', move, {}, target, source, move) !== false && copy.runEvent('TryHit', target, source, move);
  if (!open && open !== 0) return 0;
  return (copy.actions.getDamage(source, target, move, true) || 0) / target.maxhp;
}

/** Samples of whole battles. @param {string} format @param {number} battles @returns {Sample[]} */
export function samples(format, battles) {
  const rules = makeRules({format, seed: '23', accelerate: false}), stream = new Stream(9), view = new ArrayBuffer(VIEW_BYTES);
  const u8 = new Uint8Array(view), u16 = new Uint16Array(view);
  /** @type {Sample[]} */
  const found = [];
  let count = 0;
  for (let number = 0; number < battles; number++) {
    const table = new Table(rules, number, 0);
    for (table.update(); table.outcome === OUTCOME.playing; table.update()) {
      for (let seat = 0; seat < 2; seat++) if (table.masks[seat]) table.write(seat, u8, 0);
      if (table.masks[0] && table.masks[1] && count++ % EVERY === 0) {
        for (let seat = 0; seat < 2; seat++) found.push(...look(table, seat));
      }
      for (let seat = 0; seat < 2; seat++) {
        if (table.masks[seat] && !table.battle.ended) table.play(seat, pick(table.masks[seat], stream));
      }
    }
    table.end();
  }
  return found;
}

/** The moves that a seat has on offer. @param {Table} table @param {number} seat @returns {Sample[]} */
function look(table, seat) {
  const {battle, tracker, rules: {model, lexicon}} = table, mine = table.encoders[seat], foe = mine.theirs.active;
  const moves = /** @type {import('../src/simulator.js').RequestMove[]} */ (battle.sides[seat].activeRequest?.active?.[0]?.moves ?? []), other = table.encoders[1 - seat].team[0];
  if (!foe) return [];
  const [user, target] = [seat, 1 - seat].map(side => battle.sides[side].active[0]), [own] = mine.team;
  const offered = moves.map(({id}, i) => (own.moveIds[i]?.startsWith(id) ? own.moves[i] : lexicon.move(id)));
  return offered.filter(({category}) => category !== 0).map(move => ({
    move: move.key, user: user.baseSpecies.id, target: target.baseSpecies.id,
    real: dealt(battle, seat, move.key) * move.hits,
    form: model.share(own.fighter, other.fighter, move, tracker, mine.theirs),
    seen: model.share(own.fighter, mine.foeFighters[foe.id], move, tracker, mine.theirs),
  }));
}
