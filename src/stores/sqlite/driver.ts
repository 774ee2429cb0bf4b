import { createRequire } from 'node:module'
import type BetterSqlite3 from 'better-sqlite3'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { messageOf } from '../../core/errors/description.ts'

const require = createRequire(import.meta.url)
/** better-sqlite3 13, whose package has its binaries. It ends the process on Node 20, which therefore never loads it. */
const PREBUILT = 'better-sqlite3-prebuilt'
const PREBUILT_NODE_MIN = 22

/** better-sqlite3: version 13 where it loads, else 12, which a compiler has built. @throws TOOL_UNAVAILABLE when neither loads */
function load(): typeof BetterSqlite3 {
  const isPrebuilt = Number(process.versions.node.split('.')[0]) >= PREBUILT_NODE_MIN
  const faults: string[] = []
  for (const name of isPrebuilt ? [PREBUILT, 'better-sqlite3'] : ['better-sqlite3']) {
    try {
      const Database = require(name) as typeof BetterSqlite3
      // The package loads its binary with the first database.
      new Database(':memory:').close()
      return Database
    } catch (thrown) {
      faults.push(`${name}: ${messageOf(thrown).split('\n')[0]}`)
    }
  }
  const mend = isPrebuilt
    ? 'Install the packages again'
    : 'On Node 20: npm install --save-optional better-sqlite3@12.9.0, where it has to be compiled with g++, make and python3'
  throw new HeddleError('TOOL_UNAVAILABLE', `better-sqlite3 does not load (${faults.join('; ')}). ${mend}`)
}

export const Database: typeof BetterSqlite3 = load()
