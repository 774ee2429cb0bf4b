import { logContract } from '../../contracts/log.ts'
import { POOLED } from '../../contracts/log-kinds.ts'

// The rules in which one process hears of another, which it does without LISTEN here.
logContract(POOLED, [
  'the first burst of a lane keeps the order of its keys',
  'what a killed process had in hand, and what it had for later, is taken over by another one',
  'the order of a key holds while one of several processes is killed, and the next one comes',
  'a broadcast reaches the threads of each process, in the order of its key',
  'a letter is listed, replayed and deleted by any process',
])
