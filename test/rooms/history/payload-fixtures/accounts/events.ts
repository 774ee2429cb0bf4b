import { z } from 'zod'
import type { EventContracts } from '#heddle'

export default {
  'account.opened': z.object({ email: z.string(), motto: z.string().meta({ secret: true }) }),
} satisfies EventContracts
