/** Where battles get their teams: from the format's own generator, or from the user's files, judged by its validator. */

import {BANK, DEAL, key, simulatorSeed} from './random.js';

/**
 * @typedef {import('./simulator.js').Simulator} Simulator
 * @typedef {{file: string, text: string}} TeamFile
 */

/** A format or a team that cannot be played; `content` says what is wrong in the parts of a sentence. */
export class RulesError extends Error {
  /** @param {{kind: string} & Record<string, unknown>} content */
  constructor(content) {
    super(content.kind);
    this.content = content;
  }
}

/** The format of a name, if it is one for singles. @param {Simulator} simulator @param {string} name */
export function findFormat({Dex}, name) {
  const format = Dex.formats.get(name);
  if (!format.exists || format.effectType !== 'Format' || format.gameType !== 'singles') {
    const known = Dex.formats.all().filter(each => each.effectType === 'Format' && each.gameType === 'singles').map(each => each.id);
    throw new RulesError({kind: 'format', format: name, known});
  }
  return format;
}

/** The texts of the teams in a file: packed, one a line, or exported, each under a `===` line of its own. @param {string} text */
function split(text) {
  const lines = text.split(/\r?\n/).map(line => line.trim());
  const filled = lines.filter(line => line && !line.startsWith('==='));
  if (filled.length && filled.every(line => line.split('|').length > 8)) return filled;
  return lines.join('\n').split(/^===.*$/m).filter(part => part.trim());
}

/**
 * The teams of the user's files, packed as the format's validator leaves them.
 * @param {Simulator} simulator @param {any} format @param {TeamFile[]} files
 */
export function readTeams({Teams, TeamValidator}, format, files) {
  if (format.team && files.length) throw new RulesError({kind: 'generated', format: format.id, file: files[0].file});
  if (!format.team && !files.length) throw new RulesError({kind: 'teamless', format: format.id});
  const validator = files.length ? TeamValidator.get(format) : null, teams = [];
  for (const {file, text} of files) {
    const found = split(text);
    if (!found.length) throw new RulesError({kind: 'team', format: format.id, file, problems: ['there is no Pokémon in it.']});
    for (const each of found) {
      const team = Teams.import(each.trim());
      const problems = team?.length ? validator?.validateTeam(team) : ['it cannot be read as a team.'];
      if (problems?.length) throw new RulesError({kind: 'team', format: format.id, file, problems});
      teams.push(Teams.pack(team ?? []));
    }
  }
  return teams;
}

/** The teams that battles are drawn from. */
export class TeamBank {
  /** @param {Simulator} simulator @param {any} format @param {TeamFile[]} files @param {bigint} seed @param {number} size of the pool, where teams are generated */
  constructor(simulator, format, files, seed, size) {
    this.simulator = simulator;
    this.format = format.id;
    this.seed = seed;
    this.given = readTeams(simulator, format, files);
    this.size = this.given.length || size;
    /** @type {Map<number, string>} */
    this.made = new Map();
  }

  /** A seat's team, the same in every process. @param {number} deal @param {number} game @param {number} seat */
  draw(deal, game, seat) {
    return this.team(Number(key(this.seed, [DEAL, deal, game, seat, 0, 1]) % BigInt(this.size)));
  }

  /** A team by its number; one that is generated is made when it is first wanted. @param {number} number */
  team(number) {
    if (this.given.length) return this.given[number];
    let team = this.made.get(number);
    if (team === undefined) {
      const seed = simulatorSeed(key(this.seed, [BANK, number, 0, 0, 0, 0]));
      const {Teams} = this.simulator;
      team = Teams.pack(Teams.generate(this.format, {seed}));
      this.made.set(number, team);
    }
    return team;
  }
}
