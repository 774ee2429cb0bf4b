import { logContract } from '../contracts/log.ts'
import { POSTGRES } from '../contracts/log-kinds.ts'
import { runBusContract } from '../rooms/events/bus-contract.ts'
import { postgresServer } from '../support/servers/postgres.ts'
import { toolsDirWith } from '../support/tools-dir.ts'

logContract(POSTGRES, 'shared')

runBusContract('the database (PostgreSQL)', async (t) => {
  const postgres = await postgresServer(t)
  if (postgres === null) return null
  return { ...postgres.env, EVENT_BUS_DRIVER: 'database', TOOLS_DIR: await toolsDirWith(t, 'postgres') }
})
