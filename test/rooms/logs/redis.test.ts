import { logContract } from '../../contracts/log.ts'
import { REDIS } from '../../contracts/log-kinds.ts'

logContract(REDIS, 'own')
