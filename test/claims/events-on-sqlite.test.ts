import { runBusContract } from '../rooms/events/bus-contract.ts'

runBusContract('the database (SQLite)', async () => ({ EVENT_BUS_DRIVER: 'database' }))
