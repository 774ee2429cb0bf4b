import { runDbContract } from './contract.ts'
import { createDb } from './fixture.ts'

runDbContract('SQLite', (t) => createDb(t))
