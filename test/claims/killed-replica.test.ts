import { logContract } from '../contracts/log.ts'
import { REDIS } from '../contracts/log-kinds.ts'

logContract(REDIS, [
  'what a killed process had in hand, and what it had for later, is taken over by another one',
  'the order of a key holds while one of several processes is killed, and the next one comes',
])
