import { logContract } from '../contracts/log.ts'
import { SQLITE } from '../contracts/log-kinds.ts'
import { runBusContract } from '../rooms/events/bus-contract.ts'

logContract(SQLITE, 'shared')

runBusContract('the database (SQLite)', async () => ({ EVENT_BUS_DRIVER: 'database' }))
