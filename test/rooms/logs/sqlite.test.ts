import { logContract } from '../../contracts/log.ts'
import { SQLITE } from '../../contracts/log-kinds.ts'

logContract(SQLITE, 'own')
