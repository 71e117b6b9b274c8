/** What each kind of public line means. */

import {toKey, typeNumber} from './lexicon.js';
import {VOLATILES} from './mon.js';
import {numbered, schema} from './schema.js';

/**
 * @typedef {import('./mon.js').Mon} Mon
 * @typedef {import('./tracker.js').Tracker} Tracker
 */

const WEATHER = numbered('weather'), TERRAIN = numbered('terrain'), ROOMS = numbered('rooms'), BOOSTS = numbered('boosts');
const BOOST_COUNT = BOOSTS.size;
const TRANSFORMED = VOLATILES.get('transform')?.high ?? 0;
const OTHER_NAMES = new Map([['snow', 'snowscape']]);

/** The name of an effect without its kind: `move: Leech Seed` is leechseed. @param {string | undefined} text */
function effectKey(text) {
  if (text === undefined) return '';
  const colon = text.indexOf(': ');
  return toKey(colon < 0 ? text : text.slice(colon + 2));
}

/** @typedef {(tracker: Tracker, parts: string[]) => void} Handler */

/** @param {(mon: Mon, parts: string[], tracker: Tracker) => void} act @returns {Handler} */
function onMon(act) {
  return (tracker, parts) => {
    const mon = tracker.mon(parts[2]);
    if (mon) act(mon, parts, tracker);
  };
}

/** @param {(value: number) => number} change @returns {Handler} */
function onBoosts(change) {
  return onMon(mon => {
    for (let i = 0; i < BOOST_COUNT; i++) mon.boosts[i] = change(mon.boosts[i]);
    mon.revision++;
  });
}

/** @param {1 | -1 | 0} sign 0 sets the value @returns {Handler} */
function onBoost(sign) {
  return onMon((mon, parts) => {
    const at = BOOSTS.get(parts[3] ?? '');
    if (at === undefined) return;
    const amount = Number(parts[4]), old = mon.boosts[at];
    mon.boosts[at] = Math.max(-6, Math.min(6, sign === 0 ? amount : old + sign * amount));
    mon.revision++;
  });
}

const health = onMon((mon, parts, tracker) => tracker.condition(mon, parts[3]));

/** @type {Record<string, Handler | undefined>} */
export const HANDLERS = Object.assign(Object.create(null), /** @type {Record<string, Handler>} */ ({
  'switch': (tracker, parts) => tracker.enter(parts, false),
  'drag': (tracker, parts) => tracker.enter(parts, false),
  'replace': (tracker, parts) => tracker.enter(parts, true),
  'clearpoke': tracker => {
    for (const side of tracker.sides) side.clearPreview();
  },
  'poke': (tracker, parts) => {
    const [species, ...details] = (parts[3] ?? '').split(', ');
    const level = details.find(detail => /^L\d+$/.test(detail));
    tracker.side(parts[2]).preview(tracker.lexicon.species(species ?? ''), level ? Number(level.slice(1)) : 100);
  },
  'teamsize': (tracker, parts) => {
    tracker.side(parts[2]).size = Number(parts[3]);
  },
  'turn': (tracker, parts) => tracker.nextTurn(Number(parts[2])),
  'detailschange': onMon((mon, parts, tracker) => {
    mon.become(tracker.lexicon.species((parts[3] ?? '').split(', ')[0] ?? ''), true);
  }),
  '-formechange': onMon((mon, parts, tracker) => mon.become(tracker.lexicon.species(parts[3] ?? ''), false)),
  '-mega': onMon((mon, parts, tracker) => {
    tracker.side(parts[2]).spent = true;
    tracker.hold(mon, parts[4] ?? '');
  }),
  '-burst': (tracker, parts) => {
    tracker.side(parts[2]).spent = true;
  },
  '-zpower': (tracker, parts) => {
    tracker.side(parts[2]).spent = true;
  },
  '-terastallize': onMon((mon, parts, tracker) => {
    tracker.side(parts[2]).spent = true;
    tracker.terastallize(mon, parts[3] ?? '');
  }),
  'faint': onMon((mon, parts, tracker) => {
    if (!mon.fainted) tracker.side(parts[2]).fainted++;
    mon.fainted = true;
    mon.hp = 0;
    mon.revision++;
  }),
  'move': onMon((mon, parts, tracker) => {
    mon.setVolatile('destinybond', false);
    mon.setVolatile('glaiverush', false);
    mon.setVolatile('charging', false);
    for (let i = 5; i < parts.length; i++) {
      const part = parts[i];
      if (part?.startsWith('[from]') && !part.includes('lockedmove')) return;
      if (part?.startsWith('[zeffect]')) return;
    }
    const move = tracker.lexicon.move(parts[3] ?? '');
    if (move.key === 'struggle' || move.key.startsWith('max') || move.key.startsWith('gmax')) return;
    if ((mon.high & TRANSFORMED) !== 0) return;
    const at = mon.learn(move);
    const locked = parts.some(part => part.startsWith('[from]'));
    if (at >= 0 && !locked) {
      const foe = tracker.side(parts[2]) === tracker.sides[0] ? tracker.sides[1].active : tracker.sides[0].active;
      const cost = foe && foe.ability === tracker.lexicon.ability('Pressure') ? 2 : 1;
      mon.used[at] = mon.used[at] + cost;
    }
  }),
  'cant': onMon((mon, parts) => {
    if (parts[3] === 'flinch') mon.setVolatile('flinched', true);
    if (parts[3] === 'recharge') mon.setVolatile('mustrecharge', false);
    mon.setVolatile('charging', false);
  }),
  '-damage': health,
  '-heal': (tracker, parts) => {
    const mon = tracker.mon(parts[2]);
    if (mon?.fainted) {
      mon.fainted = false;
      tracker.side(parts[2]).fainted--;
    }
    health(tracker, parts);
  },
  '-sethp': health,
  '-status': onMon((mon, parts, tracker) => tracker.setStatus(mon, parts[3] ?? '')),
  '-curestatus': onMon((mon, _, tracker) => tracker.setStatus(mon, '')),
  '-cureteam': (tracker, parts) => {
    for (const mon of tracker.side(parts[2]).mons) tracker.setStatus(mon, '');
  },
  '-boost': onBoost(1),
  '-unboost': onBoost(-1),
  '-setboost': onBoost(0),
  '-clearboost': onBoosts(() => 0),
  '-invertboost': onBoosts(value => -value),
  '-clearpositiveboost': onBoosts(value => Math.min(0, value)),
  '-clearnegativeboost': onBoosts(value => Math.max(0, value)),
  '-clearallboost': tracker => {
    for (const side of tracker.sides) {
      side.active?.boosts.fill(0);
      if (side.active) side.active.revision++;
    }
  },
  '-copyboost': onMon((mon, parts, tracker) => {
    const from = tracker.mon(parts[3]);
    if (from) mon.boosts.set(from.boosts);
    mon.revision++;
  }),
  '-swapboost': onMon((mon, parts, tracker) => {
    const other = tracker.mon(parts[3]);
    if (!other) return;
    const which = parts[4] && !parts[4].startsWith('[') ? parts[4].split(', ') : schema.lists.boosts ?? [];
    for (const name of which) {
      const at = BOOSTS.get(name);
      if (at === undefined) continue;
      const mine = mon.boosts[at];
      mon.boosts[at] = other.boosts[at];
      other.boosts[at] = mine;
    }
    mon.revision++;
    other.revision++;
  }),
  '-weather': (tracker, parts) => {
    if (parts[3] === '[upkeep]') return;
    const key = toKey(parts[2] ?? '');
    const weather = WEATHER.get(OTHER_NAMES.get(key) ?? key) ?? 0;
    if (weather !== tracker.weather) {
      tracker.weather = weather;
      tracker.weatherBegan = tracker.turn;
      tracker.revision++;
    }
  },
  '-fieldstart': (tracker, parts) => {
    const key = effectKey(parts[2]), terrain = TERRAIN.get(key), room = ROOMS.get(key);
    if (terrain !== undefined) {
      tracker.terrain = terrain;
      tracker.terrainBegan = tracker.turn;
    }
    if (room !== undefined) tracker.rooms[room] = tracker.turn + 1;
    tracker.revision++;
  },
  '-fieldend': (tracker, parts) => {
    const key = effectKey(parts[2]), room = ROOMS.get(key);
    if (TERRAIN.has(key)) tracker.terrain = 0;
    if (room !== undefined) tracker.rooms[room] = 0;
    tracker.revision++;
  },
  '-sidestart': (tracker, parts) => tracker.setCondition(tracker.side(parts[2]), effectKey(parts[3]), true),
  '-sideend': (tracker, parts) => tracker.setCondition(tracker.side(parts[2]), effectKey(parts[3]), false),
  '-swapsideconditions': tracker => {
    const [a, b] = tracker.sides, kept = a.conditions, began = a.began;
    a.conditions = b.conditions;
    a.began = b.began;
    b.conditions = kept;
    b.began = began;
    tracker.revision++;
  },
  '-start': onMon((mon, parts, tracker) => {
    const key = effectKey(parts[3]);
    mon.setVolatile(key.startsWith('protosynthesis') ? 'protosynthesis' : key.startsWith('quarkdrive') ? 'quarkdrive' : key, true);
    if (key === 'typechange' && parts[4] && !parts[4].startsWith('[')) {
      const [first, second] = parts[4].split('/').map(typeNumber);
      if (!mon.terastallized) mon.types = [first ?? 0, second ?? 0];
      mon.revision++;
    } else if (key === 'dynamax') {
      tracker.side(parts[2]).spent = true;
      mon.revision++;
    }
  }),
  '-end': onMon((mon, parts) => {
    const key = effectKey(parts[3]);
    mon.setVolatile(key, false);
    if (key === 'dynamax') mon.revision++;
  }),
  '-singleturn': onMon((mon, parts) => {
    const key = effectKey(parts[3]);
    mon.setVolatile(key === 'protect' ? 'protected' : key, true);
  }),
  '-singlemove': onMon((mon, parts) => mon.setVolatile(effectKey(parts[3]), true)),
  '-mustrecharge': onMon(mon => mon.setVolatile('mustrecharge', true)),
  '-prepare': onMon(mon => mon.setVolatile('charging', true)),
  '-activate': onMon((mon, parts) => {
    const key = effectKey(parts[3]);
    if ((parts[3] ?? '').startsWith('move: ') && parts.some(part => part.startsWith('[of]'))) {
      if (key !== 'skillswap' && key !== 'trick' && key !== 'poltergeist') mon.setVolatile('partiallytrapped', true);
    }
    if (key === 'trapped') mon.setVolatile('trapped', true);
  }),
  '-item': onMon((mon, parts, tracker) => tracker.hold(mon, parts[3] ?? '')),
  '-enditem': onMon((mon, _, tracker) => tracker.hold(mon, '')),
  '-ability': onMon((mon, parts, tracker) => tracker.setAbility(mon, parts[3] ?? '')),
  '-endability': onMon((mon, parts, tracker) => {
    if (parts[3] && !parts[3].startsWith('[')) tracker.setAbility(mon, parts[3]);
    mon.setVolatile('gastroacid', true);
  }),
  '-transform': onMon((mon, parts, tracker) => {
    const into = tracker.mon(parts[3]);
    if (!into) return;
    mon.setVolatile('transform', true);
    mon.boosts.set(into.boosts);
    mon.become(into.species, false);
    mon.ability = into.ability;
    mon.revision++;
  }),
}));
