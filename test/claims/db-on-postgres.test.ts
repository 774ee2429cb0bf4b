import { runDbContract } from '../rooms/db/contract.ts'
import { postgresDb } from '../rooms/db/fixture.ts'
import { describeOnPostgres } from '../support/servers/postgres-of-file.ts'

describeOnPostgres('db contract on PostgreSQL', (server) =>
  runDbContract('PostgreSQL', async (t) => postgresDb(t, server, await server.createDatabase())),
)
