import { runBusContract } from './bus-contract.ts'

runBusContract('in process', async () => ({ EVENT_BUS_DRIVER: 'in_process' }))
