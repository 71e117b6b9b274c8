/** Damage in closed form beside what the simulator deals, and the cases that it knows. */

import assert from 'node:assert/strict';
import {test} from 'node:test';

import {Fighter} from '../src/damage.js';
import {Tracker} from '../src/tracker.js';
import {samples} from './agreement.js';
import {makeRules} from './simulator.js';

const BATTLES = Number(process.env.MAPLE_BATTLES ?? 4);
const CLOSE = 0.1; // of what the simulator deals, or of a fiftieth of the target's HP where that is more

/** @param {import('./agreement.js').Sample[]} found @param {'form' | 'seen'} which */
function agreement(found, which) {
  return found.filter(one => Math.abs(one[which] - one.real) <= CLOSE * Math.max(one.real, 0.02)).length / found.length;
}

/** @type {[string, number, number][]} the format; how often it is close with both Pokémon known, with what a seat knows */
const FLOORS = [['gen9randombattle', 0.9, 0.83], ['gen7randombattle', 0.9, 0.87], ['gen4randombattle', 0.9, 0.9], ['gen1randombattle', 0.89, 0.88]];

for (const [format, known, seen] of FLOORS) {
  test(`${format}: the closed form is close to what the simulator deals`, context => {
    const found = samples(format, BATTLES).filter(({real, form}) => real > 0 || form > 0);
    const shares = [agreement(found, 'form'), agreement(found, 'seen')];
    context.diagnostic(`${found.length} moves; within a tenth: ${shares.map(share => share.toFixed(3)).join(' known, ')} seen`);
    assert.ok(found.length > 100);
    assert.ok(shares[0] >= known && shares[1] >= seen, `${shares}`);
  });
}

const rules = makeRules(), {lexicon, model} = rules, tracker = new Tracker(lexicon);

/** @param {Partial<Fighter>} facts */
function fighter(facts = {}) {
  const made = Object.assign(new Fighter(), {first: lexicon.move('headbutt').type, weight: 40, item: 1, ...facts});
  made.stats.set([200, 1e6, 200, 1e6, 200, 200]); // so strong that what is rounded away does not show
  return made;
}

/** How much more a move does. @param {string} name @param {Partial<Fighter>} user @param {Partial<Fighter>} target */
function gain(name, user, target) {
  const move = lexicon.move(name), side = tracker.sides[1];
  const plain = model.share(fighter(), fighter(), move, tracker, side);
  return Math.round(100 * model.share(fighter(user), fighter(target), move, tracker, side) / plain) / 100;
}

test('what makes moves stronger or harmless is known', () => {
  const ability = (/** @type {string} */ name) => ({ability: lexicon.ability(name)}), nobody = {};
  assert.equal(gain('knockoff', nobody, {item: lexicon.item('leftovers')}), 1.5);
  assert.equal(gain('knockoff', nobody, {item: 0}), 1.5); // nearly everybody holds something
  assert.equal(gain('facade', {status: 2}, nobody), 2);
  assert.equal(gain('strength', {status: 2, ...ability('guts')}, nobody), 1.5);
  assert.equal(gain('lowkick', nobody, {weight: 250}), 2);
  assert.equal(gain('heavyslam', {weight: 200}, nobody), 3);
  assert.equal(gain('hypervoice', nobody, ability('soundproof')), 0);
  assert.equal(gain('hypervoice', ability('moldbreaker'), ability('soundproof')), 1);
  assert.equal(gain('firepunch', ability('ironfist'), nobody), 1.2);
  assert.equal(gain('surf', ability('ironfist'), nobody), 1);
  assert.equal(gain('surf', {item: lexicon.item('mysticwater')}, nobody), 1.2);
  assert.equal(gain('surf', nobody, ability('vesselofruin')), 0.75);
  assert.equal(gain('surf', ability('beadsofruin'), nobody), 1.33);
});

test('the list of a team says what the offer leaves out', () => {
  const {lexicon: old} = makeRules({format: 'gen7randombattle'});
  assert.equal(old.move('return102').power, 102);
  assert.equal(old.move('return').power, 102);
  assert.equal(old.move('hiddenpowerfire60').type, old.move('ember').type);
  assert.equal(makeRules({format: 'gen4randombattle'}).lexicon.move('explosion').powerBy > 0, true);
  assert.equal(old.move('explosion').powerBy, 0);
});
