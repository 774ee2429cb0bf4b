import { runBusContract } from './bus-contract.ts'

runBusContract('in process', async () => ({}))
