import { describeOnPostgres } from '../../support/servers/postgres-of-file.ts'
import { runDbContract } from './contract.ts'
import { postgresDb } from './fixture.ts'

describeOnPostgres('db contract on PostgreSQL', (server) =>
  runDbContract('PostgreSQL', async (t) => postgresDb(t, server, await server.createDatabase())),
)
