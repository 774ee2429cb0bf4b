import { runBusContract } from '../rooms/events/bus-contract.ts'

runBusContract('in process', async () => ({ EVENT_BUS_DRIVER: 'in_process' }))
