/**
 * The simulator with cheap event look-up; the battles are the same, byte for byte.
 *
 * Nearly every look-up of event handlers finds nothing, yet pays for making the handlers' names and for asking each
 * effect. Here the names are made once, and it is known once per dex which kinds of effect have a handler of a name at
 * all. What remains is asked for in the simulator's own order. A subclass, so that the package stays as it is; it is
 * used only with the version and the formats that tests have compared log by log.
 */

/**
 * @typedef {import('./simulator.js').Battle} Battle
 * @typedef {import('./simulator.js').Dex} Dex
 * @typedef {import('./simulator.js').Pokemon} Pokemon
 * @typedef {import('./simulator.js').Side} Side
 * @typedef {import('./simulator.js').Simulator} Simulator
 */

export const VERIFIED_VERSION = '0.11.11';

/** Formats that the tests compare with and without the accelerator. */
export const VERIFIED_FORMATS = [
  'gen1randombattle', 'gen2randombattle', 'gen3randombattle', 'gen4randombattle', 'gen5randombattle', 'gen6randombattle',
  'gen7randombattle', 'gen8randombattle', 'gen9randombattle', 'gen9bssfactory', 'gen9ou', 'gen9bssregi',
];

const CONDITION = 1, ABILITY = 2, ITEM = 4, SPECIES = 8;
const PLAIN_ONLY = new Set(['BeforeTurn', 'Update', 'Weather', 'WeatherChange', 'TerrainChange']);
// What the simulator itself looks up and calls; a mod that brings its own of these is left alone.
const REPLACED = ['runEvent', 'singleEvent', 'findEventHandlers', 'findPokemonEventHandlers', 'findSideEventHandlers',
  'findFieldEventHandlers', 'findBattleEventHandlers', 'getCallback', 'resolvePriority'];

/** A handler's name, and the kinds of effect that have a handler of that name. */
class HandlerName {
  /** @param {string} name @param {number} kinds */
  constructor(name, kinds) {
    this.name = name;
    this.kinds = kinds;
  }
}

/** The names under which an event is looked up. */
class EventNames {
  /** @param {string} event @param {(name: string) => HandlerName} handler */
  constructor(event, handler) {
    this.plain = handler(`on${event}`);
    this.ally = handler(`onAlly${event}`);
    this.foe = handler(`onFoe${event}`);
    this.any = handler(`onAny${event}`);
    this.source = handler(`onSource${event}`);
    this.prefixed = !PLAIN_ONLY.has(event);
    this.kinds = this.prefixed
      ? this.plain.kinds | this.ally.kinds | this.foe.kinds | this.any.kinds | this.source.kinds : this.plain.kinds;
  }
}

/** All names of handlers in a dex, by kind of effect. */
class HandlerIndex {
  /** @param {Dex} dex */
  constructor(dex) {
    const {Conditions, Moves, Abilities, Items, Rulesets, Pokedex} = dex.data;
    const nested = [Moves, Abilities, Items].flatMap(table => Object.values(table ?? {}).map(entry => entry.condition));
    this.names = new Map([
      [CONDITION, namesOf([...Object.values(Conditions ?? {}), ...Object.values(Rulesets ?? {}), ...nested])],
      [ABILITY, namesOf(Object.values(Abilities ?? {}))],
      [ITEM, namesOf(Object.values(Items ?? {}))],
      [SPECIES, namesOf(Object.values(Pokedex ?? {}))],
    ]);
    // From the fifth generation on, abilities and items start when their holder comes in.
    if (dex.gen >= 5) for (const kind of [ABILITY, ITEM]) this.names.get(kind)?.add('onSwitchIn');
    /** @type {Map<string, HandlerName>} */
    this.handlers = new Map();
    /** @type {Map<string, EventNames>} */
    this.events = new Map();
  }

  /** @param {string} name */
  handler(name) {
    let found = this.handlers.get(name);
    if (!found) {
      let kinds = 0;
      for (const [kind, names] of this.names) if (names.has(name)) kinds |= kind;
      found = new HandlerName(name, kinds);
      this.handlers.set(name, found);
    }
    return found;
  }

  /** @param {string} event */
  event(event) {
    let found = this.events.get(event);
    if (!found) {
      found = new EventNames(event, name => this.handler(name));
      this.events.set(event, found);
    }
    return found;
  }
}

/** @param {any[]} effects @returns {Set<string>} */
function namesOf(effects) {
  const names = new Set();
  for (const effect of effects) {
    for (const name in effect) if (name.startsWith('on')) names.add(name);
  }
  return names;
}

/** A copy of plain data, all the way down. @param {any} value @returns {any} */
function copy(value) {
  if (value === null || typeof value !== 'object') return value;
  if (Array.isArray(value)) return value.map(copy);
  const fresh = {__proto__: Object.getPrototypeOf(value), ...value};
  for (const key in fresh) {
    const inner = fresh[key];
    if (inner !== null && typeof inner === 'object') fresh[key] = copy(inner);
  }
  return fresh;
}

/**
 * A dex like the given one that copies moves at a third of the cost: each move in use is a copy of its own.
 * @param {any} dex @returns {any}
 */
function withFastCopies(dex) {
  return Object.assign(Object.create(dex), {
    /** @param {any} move */
    getActiveMove(move) {
      if (move && typeof move.hit === 'number') return move;
      const fresh = copy(dex.moves.get(move));
      fresh.hit = 0;
      return fresh;
    },
  });
}

/**
 * The battle class to play a format with, and, where it is the simulator's own, why.
 * @param {Simulator} simulator @param {string} format @param {string} [verified] for tests: another verified version
 * @returns {{Battle: new (options: object) => any, reason: string}}
 */
export function accelerate(simulator, format, verified = VERIFIED_VERSION) {
  const stock = simulator.Battle;
  if (simulator.version !== verified) {
    return {Battle: stock, reason: `it was not verified with pokemon-showdown ${simulator.version}`};
  }
  if (!VERIFIED_FORMATS.includes(format)) return {Battle: stock, reason: `it was not verified on ${format}`};
  const dex = simulator.Dex.forFormat(simulator.Dex.formats.get(format));
  const scripts = {...dex.data.Scripts, ...simulator.Dex.formats.get(format).battle};
  const own = REPLACED.find(name => typeof scripts[name] === 'function');
  if (own) return {Battle: stock, reason: `${format} brings its own ${own}`};
  return {Battle: makeFastBattle(simulator, new HandlerIndex(dex), withFastCopies(dex)), reason: ''};
}

/** @param {Simulator} simulator @param {HandlerIndex} index @param {Dex} fastDex */
function makeFastBattle(simulator, index, fastDex) {
  const Stock = /** @type {new (options: object) => any} */ (simulator.Battle);
  const {Pokemon, Side} = simulator;
  /** @type {any[] | null} what runEvent() has found and the simulator's own runEvent() is about to ask for */
  let found = null;

  return class FastBattle extends Stock {
    /** @param {object} options */
    constructor(options) {
      super(options);
      this.dex = this.actions.dex = fastDex;
    }

    /**
     * @param {string} event @param {any} target @param {any} source @param {any} sourceEffect @param {any} relay
     * @param {boolean} onEffect @param {boolean} fastExit
     */
    runEvent(event, target, source, sourceEffect, relay, onEffect, fastExit) {
      if (!onEffect && this.eventDepth < 8 && !Array.isArray(target)) {
        const handlers = this.findEventHandlers(target || this, event, source instanceof Pokemon ? source : null);
        if (handlers.length === 0) {
          if (relay === undefined || relay === null) return true;
          return typeof relay === 'number' && relay >= 0 && Number.isInteger(relay) ? this.modify(relay, 1) : relay;
        }
        found = handlers;
      }
      return super.runEvent(event, target, source, sourceEffect, relay, onEffect, fastExit);
    }

    /**
     * @param {string} event @param {any} effect @param {any} state @param {any} target @param {any} source
     * @param {any} sourceEffect @param {any} relay @param {any} callback
     */
    singleEvent(event, effect, state, target, source, sourceEffect, relay, callback) {
      if (!callback && effect[index.event(event).plain.name] === undefined && this.eventDepth < 8 &&
        this.log.length - this.sentLogPos <= 1000) return relay === undefined ? true : relay;
      return super.singleEvent(event, effect, state, target, source, sourceEffect, relay, callback);
    }

    /** @param {any} target @param {string} event @param {any} source */
    findEventHandlers(target, event, source) {
      if (found !== null) {
        const handlers = found;
        found = null;
        return handlers;
      }
      if (Array.isArray(target)) return super.findEventHandlers(target, event, source);
      const names = index.event(event);
      /** @type {any[]} */
      const handlers = [];
      if (names.kinds !== 0) this.collect(target, names, source, handlers);
      if (names.plain.kinds & CONDITION) this.collectField(names.plain.name, handlers);
      if (this.format[names.plain.name] !== undefined || this.events !== null) {
        handlers.push(...this.findBattleEventHandlers(names.plain.name));
      }
      return handlers;
    }

    /** Handlers on Pokémon and sides. @param {any} target @param {EventNames} names @param {any} source @param {any[]} into */
    collect(target, names, source, into) {
      const {plain, foe, any, prefixed} = names;
      const whole = target instanceof Side;
      let side = /** @type {Side | null} */ (whole ? target : null);
      if (target instanceof Pokemon) {
        const pokemon = /** @type {Pokemon} */ (/** @type {unknown} */ (target));
        if (pokemon.isActive || source?.isActive) {
          this.collectPokemon(pokemon, plain, into);
          if (prefixed) this.collectAround(pokemon.side, names, into);
          side = pokemon.side;
        }
      }
      if (source && prefixed) this.collectPokemon(source, names.source, into);
      if (side === null) return;
      for (const each of this.sides) {
        const own = each === side || each === side.allySide;
        if (whole) {
          for (const active of each.active) {
            if (own) this.collectPokemon(active, plain, into);
            else if (prefixed) this.collectPokemon(active, foe, into);
            if (prefixed) this.collectPokemon(active, any, into);
          }
        }
        if (each.n < 2 || !each.allySide) {
          if (own) this.collectSide(each, plain, into);
          else if (prefixed) this.collectSide(each, foe, into);
          if (prefixed) this.collectSide(each, any, into);
        }
      }
    }

    /** Handlers of everybody on the field for what happens to others. @param {Side} side @param {EventNames} names @param {any[]} into */
    collectAround(side, names, into) {
      const {ally, foe, any} = names;
      if ((ally.kinds | any.kinds) !== 0) {
        for (const active of side.allies()) {
          this.collectPokemon(active, ally, into);
          this.collectPokemon(active, any, into);
        }
      }
      if ((foe.kinds | any.kinds) !== 0) {
        for (const active of side.foes()) {
          this.collectPokemon(active, foe, into);
          this.collectPokemon(active, any, into);
        }
      }
    }

    /** @param {Pokemon} pokemon @param {HandlerName} handler @param {any[]} into */
    collectPokemon(pokemon, {name, kinds}, into) {
      if (kinds === 0) return;
      if (kinds & CONDITION) {
        if (pokemon.status) this.offer(pokemon, pokemon.getStatus(), name, pokemon.statusState, pokemon.clearStatus, into);
        for (const id in pokemon.volatiles) {
          const effect = this.dex.conditions.getByID(id);
          this.offer(pokemon, effect, name, pokemon.volatiles[id], pokemon.removeVolatile, into);
        }
      }
      if (kinds & ABILITY) this.offer(pokemon, pokemon.getAbility(), name, pokemon.abilityState, pokemon.clearAbility, into);
      if (kinds & ITEM && pokemon.item) {
        this.offer(pokemon, pokemon.getItem(), name, pokemon.itemState, pokemon.clearItem, into);
      }
      if (kinds & SPECIES) this.offer(pokemon, pokemon.baseSpecies, name, pokemon.speciesState, doNothing, into);
      if (kinds & CONDITION) {
        const {side, position} = pokemon, slot = side.slotConditions[position];
        for (const id in slot) {
          const effect = this.dex.conditions.getByID(id);
          const callback = this.getCallback(pokemon, effect, name);
          if (callback === undefined) continue;
          const end = {end: /** @type {any} */ (side).removeSlotCondition, endCallArgs: [side, pokemon, effect.id]};
          into.push(this.resolvePriority({effect, callback, state: slot[id], ...end, effectHolder: pokemon}, name));
        }
      }
    }

    /**
     * Add an effect's handler, if it has one.
     * @param {any} effectHolder @param {any} effect @param {string} name @param {any} state @param {any} end @param {any[]} into
     */
    offer(effectHolder, effect, name, state, end, into) {
      const callback = this.getCallback(effectHolder, effect, name);
      if (callback !== undefined) into.push(this.resolvePriority({effect, callback, state, end, effectHolder}, name));
    }

    /** @param {any} side @param {HandlerName} handler @param {any[]} into */
    collectSide(side, {name, kinds}, into) {
      if (!(kinds & CONDITION)) return;
      for (const id in side.sideConditions) {
        const effect = this.dex.conditions.getByID(id);
        this.offer(side, effect, name, side.sideConditions[id], side.removeSideCondition, into);
      }
    }

    /** @param {string} name @param {any[]} into */
    collectField(name, into) {
      const {field} = this;
      for (const id in field.pseudoWeather) {
        const effect = this.dex.conditions.getByID(id);
        this.offer(field, effect, name, field.pseudoWeather[id], field.removePseudoWeather, into);
      }
      if (field.weather) this.offer(field, field.getWeather(), name, field.weatherState, field.clearWeather, into);
      if (field.terrain) this.offer(field, field.getTerrain(), name, field.terrainState, field.clearTerrain, into);
    }
  };
}

function doNothing() {}
