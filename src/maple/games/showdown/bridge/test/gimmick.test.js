/** Moves with a generation's gimmick beside what the simulator deals with it. */

import assert from 'node:assert/strict';
import {test} from 'node:test';

import {OUTCOME} from '../src/account.js';
import {gimmickOf} from '../src/actions.js';
import {pick, Stream} from '../src/random.js';
import {numbered, VIEW_BYTES} from '../src/schema.js';
import {Table} from '../src/table.js';
import {dealt} from './agreement.js';
import {makeRules} from './simulator.js';

const BATTLES = Number(process.env.MAPLE_BATTLES ?? 8);
const CLOSE = 0.1; // of what the simulator deals, or of a fiftieth of the target's HP where that is more
const GIMMICKS = numbered('gimmick');

/** What the simulator makes of a move, by the gimmick. @type {Record<string, (actions: any, source: any, move: any) => any>} */
const MADE = {
  zmove: (actions, source, move) => actions.getActiveZMove(move, source),
  dynamax: (actions, source, move) => {
    source.addVolatile('dynamax');
    return actions.getActiveMaxMove(move, source);
  },
  mega: (actions, source, move) => {
    actions.runMegaEvo(source);
    return move;
  },
};

/** The moves on offer with a gimmick in some battles: dealt by the simulator, and by the closed form. @param {string} format @param {string} gimmick @param {number} every decisions between two samples */
function samples(format, gimmick, every) {
  const rules = makeRules({format, seed: '31', accelerate: false}), stream = new Stream(5), found = [];
  const u8 = new Uint8Array(VIEW_BYTES), u16 = new Uint16Array(u8.buffer);
  let count = 0;
  for (let number = 0; number < BATTLES; number++) {
    const table = new Table(rules, number, 0);
    for (table.update(); table.outcome === OUTCOME.playing; table.update()) {
      for (let seat = 0; seat < 2; seat++) if (table.masks[seat]) table.write(seat, u8, 0);
      for (let seat = 0; seat < 2 && table.masks[0] && table.masks[1]; seat++) {
        const active = table.battle.sides[seat].activeRequest?.active?.[0];
        if (active && gimmickOf(active) === GIMMICKS.get(gimmick) && count++ % every === 0) found.push(...look(table, seat, active, gimmick));
      }
      // The gimmick is kept, so as to be on offer for long.
      for (let seat = 0; seat < 2; seat++) {
        const mask = table.masks[seat] & ~0xf0;
        if (mask && !table.battle.ended) table.play(seat, pick(mask, stream));
      }
    }
    table.end();
  }
  return found;
}

/** @param {Table} table @param {number} seat @param {import('../src/simulator.js').ActiveRequest} active @param {string} gimmick */
function look(table, seat, active, gimmick) {
  const mine = table.encoders[seat], foe = mine.theirs.active, [own] = mine.team, other = table.encoders[1 - seat].team[0], found = [];
  if (!foe || !other) return [];
  for (let i = 0; i < active.moves.length; i++) {
    const move = own.moves[i];
    if (!move || move.category === 0 || !own.moveIds[i].startsWith(active.moves[i].id)) continue;
    if (gimmick === 'zmove' && !active.canZMove?.[i]) continue;
    const [plain, form] = mine.gimmicks.shares(own, other.fighter, move, active, i, table.tracker, mine.theirs);
    found.push({move: move.key, plain, form, real: dealt(table.battle, seat, move.key, MADE[gimmick])});
  }
  return found;
}

/** @type {[string, string, number, number][]} the format, its gimmick, decisions between two samples, how often it is close */
const FLOORS = [['gen7randombattle', 'zmove', 1, 0.8], ['gen6randombattle', 'mega', 1, 0.75], ['gen8randombattle', 'dynamax', 10, 0.85]];

for (const [format, gimmick, every, floor] of FLOORS) {
  test(`${format}: moves with ${gimmick} are close to what the simulator deals`, context => {
    const found = samples(format, gimmick, every).filter(({real, form}) => real > 0 || form > 0);
    const close = (/** @type {'plain' | 'form'} */ which) =>
      found.filter(one => Math.abs(one[which] - one.real) <= CLOSE * Math.max(one.real, 0.02)).length / found.length;
    context.diagnostic(`${found.length} moves; within a tenth: ${close('form').toFixed(3)}, without the gimmick ${close('plain').toFixed(3)}`);
    assert.ok(found.length > 8, `${found.length}`);
    assert.ok(close('form') >= floor && close('form') > close('plain') + 0.2, `${close('form')}, ${close('plain')}`);
  });
}
