import { z } from 'zod'
import type { EventContracts } from '#heddle'

export default {
  'cloth.woven': z.object({ metres: z.number() }),
} satisfies EventContracts
