import { logContract } from '../../contracts/log.ts'
import { benchOn } from '../../contracts/log-bench.ts'

logContract(
  'memory',
  (owner) =>
    benchOn(owner, async () => ({
      env: { EVENT_BUS_DRIVER: 'in_process' },
      left: async () => 0,
      together: async () => {},
      server: null,
    })),
  {
    'outlives its process': { reason: 'it is the memory of its process', failsWith: /events handled by work/ },
    'absent groups': { reason: 'it is the memory of its process', failsWith: /handled by work/ },
    'a server that is away': { reason: 'it has none', failsWith: /a server/ },
    'several processes': { reason: 'each has its own', failsWith: /handled by work/ },
  },
)
