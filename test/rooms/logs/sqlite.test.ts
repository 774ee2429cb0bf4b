import { join } from 'node:path'
import { Database } from '../../../src/stores/sqlite/driver.ts'
import { logContract } from '../../contracts/log.ts'
import { benchOn } from '../../contracts/log-bench.ts'
import { temporaryFolder } from '../../support/folder.ts'

const LEFT = 'SELECT (SELECT count(*) FROM heddle_event) + (SELECT count(*) FROM heddle_delivery) AS count'

logContract(
  'SQLite',
  (owner) =>
    benchOn(owner, async (of) => {
      const folder = temporaryFolder(of)
      const path = join(folder, 'service.db')
      const left = async (): Promise<number> => {
        const database = new Database(path, { readonly: true, timeout: 5000 })
        try {
          return Number((database.prepare(LEFT).get() as { count: number }).count)
        } finally {
          database.close()
        }
      }
      return { env: { EVENT_BUS_DRIVER: 'database', SQLITE_PATH: path }, left, together: async () => {}, server: null }
    }),
  {
    'an event that ends its process each time is a dead letter in the end, and what was in hand with it is handled': {
      reason: 'without a guardian what has died with it twice is a letter before it is tried alone',
      failsWith: /events handled by work/,
    },
    'a server that is away': { reason: 'it has none', failsWith: /a server/ },
    'several processes': { reason: 'a file is one process’s', failsWith: /The runtime ended with 78/ },
  },
)
