import { serverOfFile } from '../support/servers/postgres-of-file.ts'
import { runDbContract } from './contract.ts'
import { postgresDb } from './fixture.ts'

const server = await serverOfFile('db contract on PostgreSQL')
if (server !== null) runDbContract('PostgreSQL', async (t) => postgresDb(t, server, await server.createDatabase()))
