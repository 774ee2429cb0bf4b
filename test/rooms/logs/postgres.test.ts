import { logContract } from '../../contracts/log.ts'
import { POSTGRES } from '../../contracts/log-kinds.ts'

logContract(POSTGRES, 'own')
