// Draws runs and arguments for the peers, the same ones whenever it is asked with the same seed.

import { createHash } from 'node:crypto';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

export const TOOLS = ['search_web', 'lookup_order', 'check_policy', 'issue_refund', 'send_mail', 'get_weather'];

/** Draws what is random, the same for the same seed: each number is a hash of the seed and of how many came before. */
export class Draw {
  constructor(seed) {
    this.seed = seed;
    this.drawn = 0;
  }

  number() {
    this.drawn += 1;
    return createHash('sha256').update(`${this.seed} ${this.drawn}`).digest().readUInt32BE() / 2 ** 32;
  }

  /** A whole number from `low` to `high`, both included. */
  whole(low, high) {
    return low + Math.floor(this.number() * (high - low + 1));
  }

  chance(share) {
    return this.number() < share;
  }

  one(values) {
    return values[this.whole(0, values.length - 1)];
  }

  many(low, high, make) {
    return Array.from({ length: this.whole(low, high) }, (_, index) => make(index));
  }

  sample(values, size) {
    const left = [...values];
    return Array.from({ length: Math.min(size, left.length) }, () => left.splice(this.whole(0, left.length - 1), 1)[0]);
  }

  /** A value without structure, from few enough that equal ones meet. */
  scalar() {
    return this.one(['Paris', 'Rome', 'red shoe', '', 0, 1, 2, 2.5, 40, true, false, null, 'R-17']);
  }

  value(depth = 2) {
    if (depth === 0 || this.chance(0.65)) return this.scalar();
    if (this.chance(0.5)) return this.many(0, 3, () => this.value(depth - 1));
    return this.args(depth - 1);
  }

  args(depth = 2) {
    const keys = this.sample(['city', 'limit', 'order', 'amount', 'tags', 'page'], this.whole(0, 3));
    return Object.fromEntries(keys.map((key) => [key, this.value(depth)]));
  }

  /** Names of tools that an agent called: few different ones, so that they repeat. */
  names(low, high) {
    const known = this.sample(TOOLS, this.whole(2, 4));
    return this.many(low, high, () => this.one(known));
  }

  /** What is nearly the same list: some left out, some exchanged, some doubled, some put in between. */
  near(names) {
    const changed = names.flatMap((name) =>
      this.chance(0.12) ? [] : this.chance(0.12) ? [name, name] : this.chance(0.12) ? [this.one(TOOLS), name] : [name],
    );
    if (changed.length > 1 && this.chance(0.25)) {
      const place = this.whole(0, changed.length - 2);
      [changed[place], changed[place + 1]] = [changed[place + 1], changed[place]];
    }
    return changed;
  }

  /** A value that is equal, or nearly so. */
  nearValue(value) {
    if (this.chance(0.75)) {
      if (Array.isArray(value)) return value.map((item) => this.nearValue(item));
      if (value && typeof value === 'object')
        return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, this.nearValue(item)]));
      return value;
    }
    if (Array.isArray(value) && this.chance(0.7)) return this.chance(0.5) ? value.slice(1) : [...value, this.scalar()];
    if (value && typeof value === 'object' && this.chance(0.7)) return { ...value, page: this.scalar() };
    return this.scalar();
  }
}

/** The seed: that of the vectors, or another one that the command line gives, to look for more differences. */
export function seed(ofVectors) {
  return Number(process.argv[3] ?? ofVectors);
}

/** Imports a module of a package that is installed in the folder that the command line names. */
export async function fromFolder(request) {
  const folder = path.resolve(process.argv[2] ?? '.');
  const found = path.join(folder, 'node_modules', request);
  return import(pathToFileURL(found).href);
}

/** The version of a package that is installed there. */
export function version(name) {
  const folder = path.resolve(process.argv[2] ?? '.');
  return createRequire(path.join(folder, 'package.json'))(path.join(folder, 'node_modules', name, 'package.json'))
    .version;
}

/** Writes the rows as JSON Lines behind a line that says of which peer they are. */
export function write(peer, of, rows) {
  const lines = [{ peer, version: of, rows: rows.length }, ...rows].map((row) => JSON.stringify(row));
  process.stdout.write(`${lines.join('\n')}\n`);
}
