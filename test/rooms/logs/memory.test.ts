import { logContract } from '../../contracts/log.ts'
import { MEMORY } from '../../contracts/log-kinds.ts'

logContract(MEMORY, 'own')
