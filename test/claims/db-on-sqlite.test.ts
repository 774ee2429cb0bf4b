import { runDbContract } from '../rooms/db/contract.ts'
import { createDb } from '../rooms/db/fixture.ts'

runDbContract('SQLite', (t) => createDb(t))
